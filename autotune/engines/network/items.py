"""The numbers of SPEAD streams: ids of items, the flavour, 48-bit times, and the sizes of packets.

All packets of a heap carry all its items. The payload is one item; the others are immediate, unsigned, of 48 bits. Ids
are those of MeerKAT's digitisers, F-, X- and B-engines.
"""

FLAVOUR = (4, 64, 48, 0)  # arguments of spead2.Flavour: SPEAD 4, items of 64 bits of which 48 are an address or a value
PORT = 7148  # the default port of streams

# Items that SPEAD itself defines.
HEAP_COUNTER = 0x0001  # the heap's number, which its packets share
HEAP_LENGTH = 0x0002  # bytes of the heap's payload
PAYLOAD_OFFSET = 0x0003  # bytes from the start of the heap's payload to the packet's
PAYLOAD_LENGTH = 0x0004  # bytes of a packet's payload
STREAM_CONTROL = 0x0006  # a heap with only this item is a message about the stream
STREAM_STOP = 2  # value of STREAM_CONTROL: the sender ends the stream

# Items of all heaps with data.
TIMESTAMP = 0x1600  # the time of the heap's first sample, in samples modulo 2**48
TIME_BITS = 48  # bits of a time on the wire
TIME_MASK = (1 << TIME_BITS) - 1  # the bits of a time that go over the wire

# Items of digitisers' heaps.
DIGITISER_ID = 0x3101  # the sender; its lowest bit is the polarisation
DIGITISER_STATUS = 0x3102  # flags, and the number of saturated samples
DIGITISER_SATURATED_SHIFT = 32  # the lowest bit of the count of saturated samples in the status
DIGITISER_SATURATED = 1 << 1  # the flag in the status that is set if any sample was saturated
ADC_SAMPLES = 0x3300  # payload: packed samples of one polarisation

# Items of F-, X- and B-engines' heaps.
FENG_ID = 0x4101  # the antenna's index, from 0
FREQUENCY = 0x4103  # the heap's first channel
FENG_RAW = 0x4300  # payload: voltages [n_channels, n_spectra, n_pols, 2]
XENG_RAW = 0x1800  # payload: visibilities [n_channels, 4 n_baselines, 2]
BEAM_ANTENNAS = 0x5004  # the number of antennas in the beam
BF_RAW = 0x5000  # payload: voltages of a beam [n_channels, n_spectra, 2]

# Bytes of a packet in front of its payload: 8, and 8 for each of SPEAD's own four items and of the heap's.
DIGITISER_HEADER_BYTES = 72  # TIMESTAMP, DIGITISER_ID, DIGITISER_STATUS, ADC_SAMPLES
PAYLOAD_BYTES = 8192  # payload of a packet of F-, X- and B-engines; a digitiser's heap is one packet
