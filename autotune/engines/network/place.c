/* Says where in a chunk each SPEAD heap goes, or which counter it goes to.
 *
 * spead2 calls place_heap for the first packet of each heap, in the thread that reads the socket: no Python, and no
 * lock. A member stream has one struct placing, which nothing else writes while the stream runs, but for n_stops.
 *
 * A heap that is placed gets a chunk_id; spead2 drops one whose chunk_id stays -1. Each heap is placed or counted, in
 * exactly one counter, so that what was sent is what arrived and what the counters have. The last stop heap is the
 * exception: it is counted, and placed besides. */
#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* chunk_place_data of spead2/recv_chunk_stream.h. */
struct place_data {
    const uint8_t *packet;
    size_t packet_size;
    int64_t *items; /* -1: the packet has no such item */
    int64_t chunk_id;
    size_t heap_index, heap_offset; /* the flag in the chunk's `present`, and the first byte in its `data` */
    uint64_t *batch_stats;
    uint8_t *extra; /* bytes that spead2 copies to the chunk's own `extra` */
    size_t extra_offset, extra_size;
};

/* The items that the stream is asked for, in this order: PlaceRules.items of placing.py. */
enum { TIME, HEAP_LENGTH, SENDER, STREAM_CONTROL };

/* COUNTERS of placing.py, in the order in which they are decided. */
enum { STOPS, NO_DATA, WRONG_SIZE, FOREIGN, OFF_GRID, JUMPED, EARLY, REPEATED };

enum { STREAM_STOP = 2 }; /* value of STREAM_CONTROL */
#define TIME_BITS 48
#define TIME_MASK ((INT64_C(1) << TIME_BITS) - 1)

/* PlacingStruct of placing.py; PlaceRules says what the settings mean. A heap's number is time / heap_samples. */
struct placing {
    /* settings */
    int64_t heap_bytes, heap_samples, chunk_heaps, n_senders, sender_mask;
    int64_t sender_flags, time_flags; /* flags from one sender to the next, from one heap of a sender to its next */
    int64_t kept_chunks, ahead_chunks, most_jump, confirm, quiet_ns;
    int64_t near, begin, n_enders, first_counter;
    uint8_t *seen;    /* [kept_chunks][chunk_heaps * n_senders]: the flags of chunk c are in row c % kept_chunks */
    int64_t *seen_of; /* [kept_chunks]: the chunk that a row is of; -1: none yet */
    int64_t *n_stops; /* stop heaps so far, of all members of a group, which share it */
    /* state */
    int64_t newest;     /* number of the newest heap; -1: none yet */
    int64_t known_ns;   /* when the last heap of a time that is not far came */
    int64_t far, n_far; /* number of the last heap of a far time, and how many in a row agree with it */
    int64_t far_sender; /* who sent it; -1: it was believed, or there was none */
    int64_t jumped_to;  /* the time that the stream has jumped to, in samples; -1: it has not */
    int64_t clock_ns;   /* what stands for the clock, in tests; -1: ask the clock */
};

/* Returns a time that no change of the date moves. It is good to some milliseconds, and cheap enough for every heap. */
static int64_t now_ns(const struct placing *p)
{
    struct timespec now;
    if (p->clock_ns >= 0)
        return p->clock_ns;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Returns the time that has `time` as its 48 bits and is nearest to the newest heap's; no time is negative. */
static int64_t unwrapped(const struct placing *p, int64_t time)
{
    int64_t known = p->newest >= 0 ? p->newest * p->heap_samples : p->near;
    int64_t apart = (time - known) & TIME_MASK;
    if (apart > TIME_MASK / 2)
        apart -= TIME_MASK + 1;
    return known + apart < 0 ? known + apart + TIME_MASK + 1 : known + apart;
}

/* Returns whether the heap of this number and sender is to be placed, and remembers it as the newest one.
 *
 * spead2's window of chunks follows the newest chunk id: one heap of a time that is far ahead would make all others too
 * old. So a far time is not believed before `confirm` heaps in a row agree on it. A sender whose clock is wrong sends
 * many in a row, too: so it is not believed, either, while another sender goes on with the known time. */
static int is_believed(struct placing *p, int64_t n, int64_t sender)
{
    int64_t ahead = n - p->newest, most_ahead = p->ahead_chunks * p->chunk_heaps;
    int64_t chunks_behind = p->newest / p->chunk_heaps - n / p->chunk_heaps;
    if (p->newest < 0 || ahead > most_ahead || chunks_behind >= p->kept_chunks) {
        int64_t apart = n > p->far ? n - p->far : p->far - n;
        p->n_far = apart <= most_ahead ? p->n_far + 1 : 1;
        p->far = n;
        p->far_sender = sender;
        if (p->n_far < p->confirm)
            return 0;
        if (p->newest >= 0) {
            if (now_ns(p) - p->known_ns < p->quiet_ns)
                return 0;
            if (ahead < 0 || ahead > p->most_jump) { /* this is a new stream: its reader begins anew */
                p->jumped_to = n * p->heap_samples;
                return 0;
            }
        }
        p->far_sender = -1; /* the stream begins here, or goes on after a gap */
    }
    p->n_far = 0;
    p->known_ns = now_ns(p);
    if (n > p->newest)
        p->newest = n;
    return 1;
}

/* Returns whether this flag of a chunk is set for the first time. Believed heaps are of kept_chunks chunks in a row, so
 * two of them never share a row of `seen`. */
static int is_first(struct placing *p, int64_t chunk, int64_t flag)
{
    int64_t row = chunk % p->kept_chunks, n_flags = p->chunk_heaps * p->n_senders;
    uint8_t *seen = p->seen + row * n_flags;
    if (p->seen_of[row] != chunk) {
        memset(seen, 0, (size_t)n_flags);
        p->seen_of[row] = chunk;
    }
    if (seen[flag])
        return 0;
    seen[flag] = 1;
    return 1;
}

void place_heap(void *given_data, size_t n_bytes, void *given_placing)
{
    struct place_data *data = given_data;
    struct placing *p = given_placing;
    uint64_t *counters = data->batch_stats + p->first_counter;
    const int64_t *items = data->items;
    int64_t time, n, chunk, sender, flag;
    (void)n_bytes; /* a later spead2 may have more fields, after these */

    if (items[STREAM_CONTROL] == STREAM_STOP) {
        counters[STOPS]++;
        /* What is under construction when a stream stops is lost. A heap of a chunk so late pushes it out before. */
        if (__atomic_add_fetch(p->n_stops, 1, __ATOMIC_ACQ_REL) >= p->n_enders && p->newest >= 0) {
            data->chunk_id = p->newest / p->chunk_heaps + p->kept_chunks;
            data->heap_index = (size_t)(p->chunk_heaps * p->n_senders); /* the last flag, which stands for no heap */
            data->heap_offset = 0;
        }
        return;
    }
    if (items[TIME] < 0 || items[SENDER] < 0) { /* a descriptor */
        counters[NO_DATA]++;
        return;
    }
    if (items[HEAP_LENGTH] != p->heap_bytes) {
        counters[WRONG_SIZE]++;
        return;
    }
    sender = items[SENDER] & p->sender_mask;
    if (sender >= p->n_senders) {
        counters[FOREIGN]++;
        return;
    }
    time = unwrapped(p, items[TIME]);
    if (time % p->heap_samples != 0) {
        counters[OFF_GRID]++;
        return;
    }
    n = time / p->heap_samples;
    if (!is_believed(p, n, sender)) {
        counters[JUMPED]++;
        return;
    }
    if (time < p->begin) {
        counters[EARLY]++;
        return;
    }
    chunk = n / p->chunk_heaps;
    flag = sender * p->sender_flags + n % p->chunk_heaps * p->time_flags;
    if (!is_first(p, chunk, flag)) { /* a second sender does not overwrite what the first one sent */
        counters[REPEATED]++;
        return;
    }
    data->chunk_id = chunk;
    data->heap_index = (size_t)flag;
    data->heap_offset = (size_t)(flag * p->heap_bytes);
    data->extra[0] = 1; /* The heap has begun. `present` says later that it is whole. */
    data->extra_offset = (size_t)flag;
    data->extra_size = 1;
}
