// Shape: the geometry of this variant. kernels/ddc/tensor.py derives it, under the same names, and says how; nothing
// here is derived again, only asserted. Parts take it as their template parameter Shape.
// Words    a run       consecutive outputs: a row of the samples' matrix; a warp has 16
//          a step      OUTPUTS_PER_STEP outputs of each row begin, a tile; N_TILES tiles are under way
//          a part      products of a step whose samples are in registers together
//          a stage     steps whose samples are copied together
//          a window    outputs of each row that are stored together
//          a group     consecutive samples that a lane decodes together; lane l1 l0 of a row takes each fourth one
struct Shape {
    // The block
    static constexpr int N_THREADS = {{ shape.n_threads }};  // blockDim.x
    static constexpr int N_WARPS = {{ shape.n_warps }};
    static constexpr int MIN_BLOCKS = {{ shape.min_blocks }};  // of a multiprocessor, which has registers for them
    static constexpr int ROWS_PER_WARP = 16;  // of a matrix of samples

    // Steps and tiles
    static constexpr int OUTPUTS_PER_STEP = {{ shape.outputs_per_step }};  // of a row
    static constexpr int OUTPUTS_PER_RUN = {{ shape.outputs_per_run }};
    static constexpr int OUTPUTS_PER_WINDOW = {{ shape.outputs_per_window }};  // of a row
    static constexpr int SAMPLES_PER_STEP = {{ shape.samples_per_step }};  // of a row
    static constexpr int BITS_PER_STEP = {{ shape.bits_per_step }};  // of a row
    static constexpr bool STEPS_ARE_BYTES = {{ shape.steps_are_bytes | lower }};  // they start at any bit of a byte otherwise
    static constexpr int STEPS_PER_ITERATION = {{ shape.steps_per_iteration }};  // of the mainloop
    static constexpr int STEPS_PER_WINDOW = {{ shape.steps_per_window }};
    static constexpr int STEPS_PER_RUN = {{ shape.steps_per_run }};
    static constexpr int WARM_UP_STEPS = {{ shape.warm_up_steps }};  // before the first outputs of a run are done
    static constexpr int END_STEP = STEPS_PER_RUN - WARM_UP_STEPS;  // behind the last: step 0's are done first
    static constexpr int N_TILES = {{ shape.n_tiles }};  // under way; also the blocks of weights, one for each
    // The next run adds what a run's last samples begin; otherwise runs take the samples of their last outputs, too.
    static constexpr bool RUNS_OVERLAP = {{ shape.runs_overlap | lower }};

    // Products (MMAs): a row's samples times a block's column of weights
    static constexpr int SAMPLES_PER_MMA = {{ shape.samples_per_mma }};  // of a row: 32 bytes of operands
    static constexpr int OPERANDS_PER_SAMPLE = {{ shape.operands_per_sample }};
    static constexpr int MMAS_PER_STEP = {{ shape.mmas_per_step }};  // samples of the next step fill the last one up
    static constexpr int MMAS_PER_PART = {{ shape.mmas_per_part }};  // a step's last part may have fewer
    static constexpr int PARTS_PER_STEP = {{ shape.parts_per_step }};
    static constexpr int MMAS_PER_CHAIN = {{ shape.mmas_per_chain }};  // that tensor cores add before float32 does; 0: all
    static constexpr int COLUMNS_PER_OUTPUT = {{ shape.columns_per_output }};
    static constexpr int OCTETS_PER_TILE = {{ shape.octets_per_tile }};  // of columns
    static constexpr int FILL_OCTETS = {{ shape.fill_octets }};  // behind the last tile, where an even number is needed
    static constexpr int COLUMNS_PER_MMA = {{ shape.columns_per_mma }};  // by wgmma: of all tiles, and what fills them up
    static constexpr bool SUMS_MOVE = {{ shape.sums_move | lower }};  // with each step; or weights do

    // Groups of samples
    static constexpr int BYTE_PERIOD = {{ shape.byte_period }};  // samples, behind which one starts at the same bit of a byte
    static constexpr int SAMPLES_PER_GROUP = {{ shape.samples_per_group }};  // whole bytes
    static constexpr int BITS_PER_GROUP = {{ shape.bits_per_group }};
    static constexpr int WORDS_PER_GROUP = {{ shape.words_per_group }};  // that a group lies in, wherever it starts
    static constexpr int MMAS_PER_GROUP = {{ shape.mmas_per_group }};  // that whole groups are samples for
    static constexpr int GROUPS_PER_PART = {{ shape.groups_per_part }};  // of a lane and a row
    static constexpr int GROUP_STRIDE = {{ shape.group_stride }};  // words, from group to group of a lane
    static constexpr int PART_STRIDE = {{ shape.part_stride }};  // words, from part to part
    static constexpr bool SAMPLES_ARE_PAIRED = {{ shape.samples_are_paired | lower }};  // halves are made two at a time
    static constexpr bool GROUPS_START_EVEN = {{ shape.groups_start_even | lower }};  // at an even byte, of paired samples
    static constexpr bool GROUPS_ARE_WORDS = {{ shape.groups_are_words | lower }};  // of bytes: they start at words

    // Stages and boxes of packed samples
    static constexpr int STEPS_PER_STAGE = {{ shape.steps_per_stage }};
    static constexpr int N_STAGES = {{ shape.n_stages }};  // that there is room for
    static constexpr int STAGES_PER_RUN = {{ shape.stages_per_run }};
    static constexpr int BITS_PER_STAGE = {{ shape.bits_per_stage }};  // of a row
    static constexpr int PIECES_PER_ROW = {{ shape.pieces_per_row }};  // of 16 bytes, of a stage
    static constexpr int STAGE_PITCH = {{ shape.stage_pitch }};  // pieces, from row to row
    static constexpr long long RUN_BYTES = {{ shape.run_bytes }};  // from row to row of the samples
    static constexpr long long BOX_PITCH = {{ shape.box_pitch }};  // bytes, from row to row of a box
    static constexpr int ROWS_PER_BOX = {{ shape.rows_per_box }};
    static constexpr int DRIFT = {{ shape.drift }};  // bytes by which a row starts further behind its copies than the last
    static constexpr int FIRST_DRIFT = {{ shape.first_drift }};  // of a box's first row

    // Weights
    static constexpr int WEIGHT_GAP_SHIFT = {{ shape.weight_gap[0] }};  // behind each 2^.. mixed weights in shared memory
    static constexpr int WEIGHT_GAP = {{ shape.weight_gap[1] }};  // there is room for so many, against conflicts of banks
    static constexpr int MIXED_BYTES = {{ shape.mixed_bytes }};  // of the mixed weights and what belongs to them
    static constexpr int N_FRAGMENTS = {{ shape.n_fragments }};  // of weights, as mma.sync takes them
    static constexpr bool WEIGHTS_ARE_SHARED = {{ shape.weights_are_shared | lower }};  // or in registers, by mma.sync
    static constexpr int BLOCKS_IN_RING = {{ shape.blocks_in_ring }};  // of weights, as wgmma takes them

    // Windows of outputs
    static constexpr int WINDOW_PITCH = {{ shape.window_pitch }};  // words, from row to row
    static constexpr int OVERLAP_AT = {{ shape.overlap_at }};  // words of a row before what it has of the run before it
    static constexpr int WINDOWS_BYTES = {{ shape.windows_bytes }};
    static constexpr int FRAGMENTS_AT = {{ shape.fragments_at }};  // bytes of the scratch memory before the fragments
    static constexpr int SCRATCH_BYTES = {{ shape.scratch_bytes }};  // mixed weights and fragments, then the windows
    static constexpr int SHARED_BYTES = {{ shape.shared_bytes }};  // dynamic, what a launch asks for

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

    // Returns the products of part `part` of a step.
    __host__ __device__ static constexpr int mmas_of_part(int part)
    {
        return part == PARTS_PER_STEP - 1 ? MMAS_PER_STEP - part * MMAS_PER_PART : MMAS_PER_PART;
    }

    // Returns where mixed weight k lies, 8 bytes each; a zero is at TAPS. Lanes take weights of outputs next to each
    // other, DECIMATION apart, and of groups of samples: gaps keep most of them from meeting in a bank.
    __host__ __device__ static constexpr unsigned place_of_weight(unsigned k)
    {
        return k + (k >> WEIGHT_GAP_SHIFT) * WEIGHT_GAP;
    }

    // Returns the place of the zero where there is no such weight; below 0 there is none either.
    __device__ __forceinline__ static unsigned place_of_any(int k)
    {
        return place_of_weight(min(static_cast<unsigned>(k), static_cast<unsigned>(TAPS)));
    }
};
