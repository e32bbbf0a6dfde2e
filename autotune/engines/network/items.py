"""The numbers of SPEAD streams: ids of items, the flavour, 48-bit times, and the sizes of packets.

All packets of a heap carry all its items. Items are immediate, unsigned and of 48 bits, but for the payload. Ids are
those of MeerKAT's digitisers, F-, X- and B-engines.
"""

FLAVOUR = (4, 64, 48, 0)  # arguments of spead2.Flavour: SPEAD 4, items of 64 bits of which 48 are an address or a value
PORT = 7148  # where streams go unless something else is said

# Items that SPEAD itself defines.
HEAP_COUNTER = 0x0001  # the heap's number, which its packets share
HEAP_LENGTH = 0x0002  # bytes of the heap's payload
PAYLOAD_OFFSET = 0x0003  # where a packet's payload lies in the heap's, in bytes
PAYLOAD_LENGTH = 0x0004  # bytes of a packet's payload
STREAM_CONTROL = 0x0006  # a heap that has this item alone tells something of the stream
STREAM_STOP = 2  # value of STREAM_CONTROL: the sender ends the stream

# Items of all heaps that have data.
TIMESTAMP = 0x1600  # when the heap's first sample was taken, in samples modulo 2**48
TIME_BITS = 48  # bits of a time on the wire
TIME_MASK = (1 << TIME_BITS) - 1  # what of a time is on the wire

# Items of digitisers' heaps.
DIGITISER_ID = 0x3101  # the sender; its lowest bit is the polarisation
DIGITISER_STATUS = 0x3102  # flags, and how many samples were saturated
DIGITISER_SATURATED_SHIFT = 32  # the bit of the status with which the count of saturated samples begins
DIGITISER_SATURATED = 1 << 1  # the flag of the status that says that some sample was saturated
ADC_SAMPLES = 0x3300  # payload: packed samples of one polarisation

# Items of F-, X- and B-engines' heaps.
FENG_ID = 0x4101  # the antenna's index, from 0
FREQUENCY = 0x4103  # the heap's first channel
FENG_RAW = 0x4300  # payload: voltages [n_channels, n_spectra, n_pols, 2]
XENG_RAW = 0x1800  # payload: visibilities [n_channels, 4 n_baselines, 2]
BEAM_ANTENNAS = 0x5004  # how many antennas are in the beam
BF_RAW = 0x5000  # payload: voltages of a beam [n_channels, n_spectra, 2]

# Bytes of a packet in front of its payload: 8, and 8 for each of SPEAD's own four items and of the heap's.
DIGITISER_HEADER_BYTES = 72  # TIMESTAMP, DIGITISER_ID, DIGITISER_STATUS, ADC_SAMPLES
F_HEADER_BYTES = 72  # TIMESTAMP, FENG_ID, FREQUENCY, FENG_RAW
X_HEADER_BYTES = 64  # TIMESTAMP, FREQUENCY, XENG_RAW
B_HEADER_BYTES = 72  # TIMESTAMP, FREQUENCY, BEAM_ANTENNAS, BF_RAW
PAYLOAD_BYTES = 8192  # payload of a packet of F-, X- and B-engines; a digitiser's heap is one packet
