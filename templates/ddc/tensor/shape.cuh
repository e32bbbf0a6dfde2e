// Shape: the geometry of this variant. kernels/ddc/tensor.py derives it under the same names and explains it. This file
// derives nothing again, it only asserts. Parts of the kernel take it as their template parameter Shape.
// Words    a run       consecutive outputs, which are a row of the samples' matrix; a warp has 16 runs
//          a step      new samples of each row, with which OUTPUTS_PER_STEP outputs begin
//          a tile      the outputs that one step begins; N_TILES tiles are under way
//          a part      products of a step whose samples are in registers together
//          a stage     steps whose samples are copied together
//          a window    outputs of each row that are stored together
//          a group     consecutive samples that a lane decodes together; lane l1 l0 takes every fourth group of a row
//          an octet    8 columns of a product
struct Shape {
    // The block
    static constexpr int N_THREADS = {{ shape.n_threads }};  // blockDim.x
    static constexpr int N_WARPS = {{ shape.n_warps }};
    static constexpr int MIN_BLOCKS = {{ shape.min_blocks }};  // blocks whose registers fit a multiprocessor
    static constexpr int ROWS_PER_WARP = 16;  // rows of the samples' matrix

    // Steps and tiles
    static constexpr int OUTPUTS_PER_STEP = {{ shape.outputs_per_step }};  // in each row
    static constexpr int OUTPUTS_PER_RUN = {{ shape.outputs_per_run }};
    static constexpr int OUTPUTS_PER_WINDOW = {{ shape.outputs_per_window }};  // in each row
    static constexpr int SAMPLES_PER_STEP = {{ shape.samples_per_step }};  // new samples in each row
    static constexpr int BITS_PER_STEP = {{ shape.bits_per_step }};  // bits of these samples
    static constexpr bool STEPS_ARE_BYTES = {{ shape.steps_are_bytes | lower }};  // or they start at any bit of a byte
    static constexpr int STEPS_PER_ITERATION = {{ shape.steps_per_iteration }};  // steps of one mainloop iteration
    static constexpr int STEPS_PER_WINDOW = {{ shape.steps_per_window }};
    static constexpr int STEPS_PER_RUN = {{ shape.steps_per_run }};
    static constexpr int WARM_UP_STEPS = {{ shape.warm_up_steps }};  // steps before the first outputs of a run are done
    // Steps are counted from the first that completes outputs, so the warm-up has numbers below 0.
    static constexpr int END_STEP = STEPS_PER_RUN - WARM_UP_STEPS;  // behind the last step
    static constexpr int N_TILES = {{ shape.n_tiles }};  // tiles under way, each with its block of weights
    // Whether the next run completes the outputs that a run's last samples begin. Otherwise a run also takes the
    // samples that its last outputs need.
    static constexpr bool RUNS_OVERLAP = {{ shape.runs_overlap | lower }};

    // Products (MMAs): a row's samples times a block's column of weights
    static constexpr int SAMPLES_PER_MMA = {{ shape.samples_per_mma }};  // in each row: 32 bytes of operands
    static constexpr int OPERANDS_PER_SAMPLE = {{ shape.operands_per_sample }};
    static constexpr int MMAS_PER_STEP = {{ shape.mmas_per_step }};  // samples of the next step fill the last one
    static constexpr int MMAS_PER_PART = {{ shape.mmas_per_part }};  // a step's last part may have fewer
    static constexpr int PARTS_PER_STEP = {{ shape.parts_per_step }};
    static constexpr int MMAS_PER_CHAIN = {{ shape.mmas_per_chain }};  // added by tensor cores before float32; 0: all
    static constexpr int COLUMNS_PER_OUTPUT = {{ shape.columns_per_output }};
    static constexpr int OCTETS_PER_TILE = {{ shape.octets_per_tile }};
    static constexpr int FILL_OCTETS = {{ shape.fill_octets }};  // octets of zeros that make the number of octets even
    static constexpr int COLUMNS_PER_MMA = {{ shape.columns_per_mma }};  // by wgmma: all tiles and FILL_OCTETS
    static constexpr bool SUMS_MOVE = {{ shape.sums_move | lower }};  // sums move with each step; if not, weights do

    // Groups of samples
    static constexpr int BYTE_PERIOD = {{ shape.byte_period }};  // samples so far apart start at the same bit of a byte
    static constexpr int SAMPLES_PER_GROUP = {{ shape.samples_per_group }};  // these are whole bytes
    static constexpr int BITS_PER_GROUP = {{ shape.bits_per_group }};
    static constexpr int WORDS_PER_GROUP = {{ shape.words_per_group }};  // words that hold a group, wherever it starts
    static constexpr int MMAS_PER_GROUP = {{ shape.mmas_per_group }};  // products that four lanes' groups fill
    static constexpr int GROUPS_PER_PART = {{ shape.groups_per_part }};  // for each lane and row
    static constexpr int GROUP_STRIDE = {{ shape.group_stride }};  // words from one group of a lane to its next
    static constexpr int PART_STRIDE = {{ shape.part_stride }};  // words from part to part
    static constexpr bool SAMPLES_ARE_PAIRED = {{ shape.samples_are_paired | lower }};  // halves are made two at a time
    static constexpr bool GROUPS_START_EVEN = {{ shape.groups_start_even | lower }};  // paired samples: at an even byte
    static constexpr bool GROUPS_ARE_WORDS = {{ shape.groups_are_words | lower }};  // groups of bytes start at words

    // Stages and boxes of packed samples
    static constexpr int STEPS_PER_STAGE = {{ shape.steps_per_stage }};
    static constexpr int N_STAGES = {{ shape.n_stages }};  // stages for which there is room in shared memory
    static constexpr int STAGES_PER_RUN = {{ shape.stages_per_run }};
    static constexpr int BITS_PER_STAGE = {{ shape.bits_per_stage }};  // in each row
    static constexpr int PIECES_PER_ROW = {{ shape.pieces_per_row }};  // pieces of 16 bytes in a stage
    static constexpr int STAGE_PITCH = {{ shape.stage_pitch }};  // pieces from row to row
    static constexpr long long RUN_BYTES = {{ shape.run_bytes }};  // bytes from row to row of the samples
    static constexpr long long BOX_PITCH = {{ shape.box_pitch }};  // bytes from row to row of a box
    static constexpr int ROWS_PER_BOX = {{ shape.rows_per_box }};
    static constexpr int DRIFT = {{ shape.drift }};  // bytes: each row starts further behind its copies
    static constexpr int FIRST_DRIFT = {{ shape.first_drift }};  // bytes from its copies to a box's first row

    // Weights
    static constexpr int WEIGHT_GAP_SHIFT = {{ shape.weight_gap[0] }};  // a gap follows each 2^.. mixed weights
    static constexpr int WEIGHT_GAP = {{ shape.weight_gap[1] }};  // its length in weights, against bank conflicts
    static constexpr int MIXED_BYTES = {{ shape.mixed_bytes }};  // size of MixedWeights
    static constexpr int N_FRAGMENTS = {{ shape.n_fragments }};  // fragments of weights, as mma.sync takes them
    static constexpr bool WEIGHTS_ARE_SHARED = {{ shape.weights_are_shared | lower }};  // or they are in registers
    static constexpr int BLOCKS_IN_RING = {{ shape.blocks_in_ring }};  // blocks of weights, as wgmma takes them

    // Windows of outputs
    static constexpr int WINDOW_PITCH = {{ shape.window_pitch }};  // words from row to row
    static constexpr int OVERLAP_AT = {{ shape.overlap_at }};  // words of a row before its part of the run before it
    static constexpr int WINDOWS_BYTES = {{ shape.windows_bytes }};
    static constexpr int FRAGMENTS_AT = {{ shape.fragments_at }};  // bytes of the scratch memory before the fragments
    static constexpr int SCRATCH_BYTES = {{ shape.scratch_bytes }};  // mixed weights and fragments, later the windows
    static constexpr int SHARED_BYTES = {{ shape.shared_bytes }};  // dynamic shared memory of a launch

    static_assert(N_THREADS == 32 * N_WARPS);
    static_assert(SAMPLES_PER_STEP == OUTPUTS_PER_STEP * DECIMATION && BITS_PER_STEP == SAMPLES_PER_STEP * SAMPLE_BITS);
    static_assert(N_TILES * SAMPLES_PER_STEP >= TAPS + (OUTPUTS_PER_STEP - 1) * DECIMATION, "each tile meets all taps");
    static_assert(MMAS_PER_STEP * SAMPLES_PER_MMA >= SAMPLES_PER_STEP, "products take all samples of a step");
    static_assert(MMAS_PER_STEP % MMAS_PER_GROUP == 0 && MMAS_PER_PART % MMAS_PER_GROUP == 0, "whole groups a part");
    static_assert(OUTPUTS_PER_STEP * COLUMNS_PER_OUTPUT == 8 * OCTETS_PER_TILE, "a tile has whole octets of columns");
    static_assert(OUTPUTS_PER_WINDOW % OUTPUTS_PER_STEP == 0 && OUTPUTS_PER_RUN % OUTPUTS_PER_STEP == 0, "whole steps");
    static_assert(RUNS_OVERLAP || OUTPUTS_PER_RUN % OUTPUTS_PER_WINDOW == 0, "whole windows a run");
    static_assert(BITS_PER_STAGE == STEPS_PER_STAGE * BITS_PER_STEP);
    static_assert(STAGES_PER_RUN * STEPS_PER_STAGE >= STEPS_PER_RUN);
    static_assert(STAGE_PITCH % 2 == 1, "loads of words by 8 rows of 4 lanes are mostly free of bank conflicts");
    static_assert(RUN_BYTES % 2 == 0, "a lane reads of rows 8 apart, which start alike within 16 bytes");
    static_assert(BOX_PITCH % 16 == 0 && DRIFT == RUN_BYTES - BOX_PITCH && (DRIFT == 0 || ROWS_PER_BOX == 8));
    static_assert(WINDOW_PITCH % 8 == 4, "stores by 8 rows of 4 lanes have no bank conflicts");

    static constexpr bool STAGES_START_ALIKE = BITS_PER_STAGE % 128 == 0;  // within 16 bytes

    // Returns the number of products in part `part` of a step.
    __host__ __device__ static constexpr int mmas_of_part(int part)
    {
        return part == PARTS_PER_STEP - 1 ? MMAS_PER_STEP - part * MMAS_PER_PART : MMAS_PER_PART;
    }

    // Returns the place of mixed weight k, in units of 8 bytes; TAPS is the place of a zero. Lanes take weights of
    // neighbouring outputs, DECIMATION apart, and of different groups; gaps spread most of these over different banks.
    __host__ __device__ static constexpr unsigned place_of_weight(unsigned k)
    {
        return k + (k >> WEIGHT_GAP_SHIFT) * WEIGHT_GAP;
    }

    // Returns the place of mixed weight k, or that of the zero if k is below 0 or from TAPS on.
    __device__ __forceinline__ static unsigned place_of_any(int k)
    {
        return place_of_weight(min(static_cast<unsigned>(k), static_cast<unsigned>(TAPS)));
    }
};
