/* Says where in a chunk each SPEAD heap goes, or which counter it goes to.
 *
 * spead2 calls place_heap for the first packet of each heap, in the thread that reads the socket: no Python, and no
 * lock. A member stream has one struct placing, which nothing else writes while the stream runs, except what it shares.
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
enum { TIME, HEAP_LENGTH, SENDER, STREAM_CONTROL, NUMBER, CHANNEL, STATUS };

/* COUNTERS of placing.py, in the order in which they are decided; a heap that is placed is ACCEPTED. */
enum { STOPS, NO_DATA, FOREIGN, WRONG_SIZE, WRONG_CHANNELS, OFF_GRID, JUMPED, EARLY, REPEATED, ACCEPTED, N_COUNTERS };

enum { STREAM_STOP = 2 };           /* value of STREAM_CONTROL */
enum { SATURATED_SHIFT = 32 };      /* the lowest bit of STATUS's count of saturated samples */
enum { MOST_DESCRIPTOR = 1 << 12 }; /* bytes of a packet of descriptors that is kept; MOST_DESCRIPTOR of placing.py */
#define TIME_BITS 48
#define TIME_MASK ((INT64_C(1) << TIME_BITS) - 1)
#define NUMBER_MASK ((INT64_C(1) << 40) - 1) /* bits above it tell the interface of an F-engine that has several */

/* What one sender's heaps have said and become: SENDER of placing.py. */
struct sender {
    int64_t n[N_COUNTERS];    /* heaps in each counter */
    int64_t said[N_COUNTERS]; /* what the last heap of each counter says of what is counted there */
    int64_t last_ns;          /* when the last heap came */
    int64_t number;           /* the last accepted heap's number on the wire */
    int64_t misnumbered;      /* accepted heaps with the numbers of other senders */
    int64_t saturated;        /* saturated samples in accepted heaps, as they say */
    int64_t described;        /* bytes of the first packet of descriptors; 0: none came */
};

/* PlacingStruct of placing.py; PlaceRules says what the settings mean. A heap's number is time / heap_samples. */
struct placing {
    /* settings */
    int64_t heap_bytes, heap_samples, chunk_heaps, n_senders, sender_mask;
    int64_t sender_flags, time_flags; /* flags from one sender to the next, from one heap of a sender to its next */
    int64_t kept_chunks, ahead_chunks, most_jump, confirm, quiet_ns;
    int64_t near, begin, n_enders, first_channel, is_numbered, takes_offset;
    uint8_t *seen;    /* [kept_chunks][chunk_heaps * n_senders]: the flags of chunk c are in row c % kept_chunks */
    int64_t *seen_of; /* [kept_chunks]: the chunk that a row is of; -1: none yet */
    int64_t *stopped; /* [n_senders]: the newest heap when a sender stopped, + 2; 0: it sends; a group shares it */
    int64_t *n_stops; /* how many senders have stopped, or stop heaps came; a group shares it */
    int64_t *known;   /* [2]: `newest` and `known_ns` of the group; a live one shares them */
    int64_t *offset;  /* samples from a multiple of a heap's to each heap's time; -1: not known yet; a group shares it */
    struct sender *senders; /* [n_senders + 1]: the last one is of heaps whose sender is not known */
    uint8_t *descriptors;   /* [n_senders][MOST_DESCRIPTOR]: the first packet of each sender's descriptors */
    /* state */
    int64_t newest;     /* number of the newest heap; -1: none yet */
    int64_t known_ns;   /* when the last heap of a time that is not far came */
    int64_t far, n_far; /* number of the last heap of a far time, and how many in a row agree with it */
    int64_t far_rest;   /* the samples from that number's to its time */
    int64_t far_sender; /* who sent it; -1: it was believed, or there was none */
    int64_t n_described; /* packets of descriptors that were kept */
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

/* Raises what a group shares to a value. */
static void raise_to(int64_t *shared, int64_t value)
{
    int64_t now = __atomic_load_n(shared, __ATOMIC_RELAXED);
    while (now < value && !__atomic_compare_exchange_n(shared, &now, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
}

/* Takes over what the other members of the group know: while one goes on, a far time of another is not believed. */
static void learn(struct placing *p)
{
    raise_to(&p->newest, __atomic_load_n(p->known, __ATOMIC_ACQUIRE));
    raise_to(&p->known_ns, __atomic_load_n(p->known + 1, __ATOMIC_ACQUIRE));
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

/* Returns whether the group's offset is this one, which the first heap that is believed decides. */
static int has_offset(struct placing *p, int64_t rest)
{
    int64_t offset = -1;
    return __atomic_compare_exchange_n(p->offset, &offset, rest, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || offset == rest;
}

/* Returns whether the heap of this number, rest and sender is to be placed, and remembers it as the newest one.
 *
 * spead2's window of chunks follows the newest chunk id: one heap of a time that is far ahead would make all others too
 * old. So a far time is not believed before `confirm` heaps in a row agree on it. A sender whose clock is wrong sends
 * many in a row, too: so it is not believed, either, while another sender goes on with the known time. A time with
 * another offset is as far as any. */
static int is_believed(struct placing *p, int64_t n, int64_t rest, int64_t sender, int64_t now)
{
    int64_t offset = __atomic_load_n(p->offset, __ATOMIC_ACQUIRE);
    int64_t ahead = n - p->newest, most_ahead = p->ahead_chunks * p->chunk_heaps;
    int64_t chunks_behind = p->newest / p->chunk_heaps - n / p->chunk_heaps;
    if (p->newest < 0 || ahead > most_ahead || chunks_behind >= p->kept_chunks || rest != offset) {
        int64_t apart = n > p->far ? n - p->far : p->far - n;
        p->n_far = apart <= most_ahead && rest == p->far_rest ? p->n_far + 1 : 1;
        p->far = n;
        p->far_rest = rest;
        p->far_sender = sender;
        if (p->n_far < p->confirm || (p->newest < 0 && !has_offset(p, rest)))
            return 0;
        if (p->newest >= 0) {
            if (now - p->known_ns < p->quiet_ns)
                return 0;
            if (rest != offset || ahead < 0 || ahead > p->most_jump) { /* this is a new stream: its reader begins anew */
                p->jumped_to = n * p->heap_samples + rest;
                return 0;
            }
        }
        p->far_sender = -1; /* the stream begins here, or goes on after a gap */
    }
    p->n_far = 0;
    if (n > p->newest)
        p->newest = n;
    raise_to(p->known, p->newest);
    raise_to(p->known + 1, now);
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

/* Returns the sender that has heaps of this number, where they are numbered in turn; negative: there is no number. */
static int64_t numbered_sender(const struct placing *p, int64_t number)
{
    return number < 0 ? number : (number & NUMBER_MASK) % p->n_senders;
}

/* Returns the sender of a stop heap, which has no item for it: the number tells, where senders' heaps are numbered in
 * turn. Otherwise it is the sender whose newest heap comes before it, among those who have not stopped. */
static int64_t stop_sender(const struct placing *p, int64_t number)
{
    int64_t own = numbered_sender(p, number), best = 0, best_number = -2;
    if (number >= 0 && p->senders[own].misnumbered == 0)
        return own;
    for (int64_t s = 0; s < p->n_senders; s++) {
        int64_t before = p->senders[s].number < number ? p->senders[s].number : -1;
        if (!p->stopped[s] && before > best_number) {
            best = s;
            best_number = before;
        }
    }
    return best;
}

/* Notes a stop heap. Where heaps are not numbered by sender, nothing tells whose it is, and each one counts. */
static void note_stop(struct placing *p, int64_t number)
{
    int64_t *stopped = p->stopped + (p->is_numbered ? stop_sender(p, number) : 0);
    if (!p->is_numbered || !__atomic_exchange_n(stopped, p->newest + 2, __ATOMIC_ACQ_REL))
        __atomic_add_fetch(p->n_stops, 1, __ATOMIC_ACQ_REL);
}

/* Notes heap n of a sender. If it has stopped and sends again for a chunk, it has not stopped: it was started again.
 * (Heaps that overtake one another are nearer.) Once all have stopped, this is the end. */
static void note_going(struct placing *p, int64_t who, int64_t n)
{
    int64_t stopped = __atomic_load_n(p->stopped + who, __ATOMIC_RELAXED);
    if (!stopped || n + 2 < stopped + p->chunk_heaps || __atomic_load_n(p->n_stops, __ATOMIC_ACQUIRE) >= p->n_enders)
        return;
    if (__atomic_exchange_n(p->stopped + who, 0, __ATOMIC_ACQ_REL))
        __atomic_add_fetch(p->n_stops, -1, __ATOMIC_ACQ_REL);
}

/* Keeps the first packet of each sender's descriptors, for Python. */
static void keep_descriptor(struct placing *p, const struct place_data *data)
{
    int64_t who = p->is_numbered ? numbered_sender(p, data->items[NUMBER]) : p->n_described;
    if (data->packet_size <= MOST_DESCRIPTOR && who >= 0 && who < p->n_senders && !p->senders[who].described) {
        memcpy(p->descriptors + who * MOST_DESCRIPTOR, data->packet, data->packet_size);
        __atomic_store_n(&p->senders[who].described, (int64_t)data->packet_size, __ATOMIC_RELEASE);
        p->n_described++;
    }
}

static void count(struct sender *sender, int counter, int64_t said)
{
    sender->n[counter]++;
    sender->said[counter] = said;
}

void place_heap(void *given_data, size_t n_bytes, void *given_placing)
{
    struct place_data *data = given_data;
    struct placing *p = given_placing;
    struct sender *sender = p->senders + p->n_senders;
    const int64_t *items = data->items;
    int64_t time, n, rest, offset, is_other, chunk, who, flag, now = now_ns(p);
    (void)n_bytes; /* a later spead2 may have more fields, after these */
    learn(p);

    if (items[STREAM_CONTROL] == STREAM_STOP) {
        count(sender, STOPS, 0);
        note_stop(p, items[NUMBER]);
        /* What is under construction when a stream stops is lost. A heap of a chunk so late pushes it out before. */
        if (__atomic_load_n(p->n_stops, __ATOMIC_ACQUIRE) >= p->n_enders && p->newest >= 0) {
            data->chunk_id = p->newest / p->chunk_heaps + p->kept_chunks;
            data->heap_index = (size_t)(p->chunk_heaps * p->n_senders); /* the last flag, which stands for no heap */
            data->heap_offset = 0;
        }
        return;
    }
    if (items[TIME] < 0 || items[SENDER] < 0) { /* a descriptor */
        count(sender, NO_DATA, 0);
        keep_descriptor(p, data);
        return;
    }
    who = items[SENDER] & p->sender_mask;
    if (who >= p->n_senders) {
        count(sender, FOREIGN, who);
        return;
    }
    sender = p->senders + who;
    sender->last_ns = now;
    if (items[HEAP_LENGTH] != p->heap_bytes) {
        count(sender, WRONG_SIZE, items[HEAP_LENGTH]);
        return;
    }
    if (items[CHANNEL] >= 0 && items[CHANNEL] != p->first_channel) {
        count(sender, WRONG_CHANNELS, items[CHANNEL]);
        return;
    }
    time = unwrapped(p, items[TIME]);
    n = time / p->heap_samples;
    rest = time % p->heap_samples;
    offset = __atomic_load_n(p->offset, __ATOMIC_ACQUIRE);
    is_other = offset >= 0 && rest != offset;
    if ((is_other && !p->takes_offset) || !is_believed(p, n, rest, who, now)) {
        if (is_other) {
            count(sender, OFF_GRID, time);
        } else {
            count(sender, JUMPED, time);
        }
        return;
    }
    if (time < p->begin) {
        count(sender, EARLY, time);
        return;
    }
    note_going(p, who, n);
    chunk = n / p->chunk_heaps;
    flag = who * p->sender_flags + n % p->chunk_heaps * p->time_flags;
    if (!is_first(p, chunk, flag)) { /* a second sender does not overwrite what the first one sent */
        count(sender, REPEATED, time);
        return;
    }
    count(sender, ACCEPTED, time);
    sender->number = items[NUMBER];
    sender->misnumbered += p->is_numbered && numbered_sender(p, items[NUMBER]) != who;
    if (items[STATUS] >= 0)
        sender->saturated += items[STATUS] >> SATURATED_SHIFT;
    data->chunk_id = chunk;
    data->heap_index = (size_t)flag;
    data->heap_offset = (size_t)(flag * p->heap_bytes);
    data->extra[0] = 1; /* The heap has begun. `present` says later that it is whole. */
    data->extra_offset = (size_t)flag;
    data->extra_size = 1;
}
