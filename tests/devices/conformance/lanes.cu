// Four bytes or two halves of a word at once; test_conformance.py names the functions in this order.
#define BOTH(f) *at = f##2(x, y), at += n, *at = f##4(x, y), at += n;
#define ONE(f) *at = f##2(x), at += n, *at = f##4(x), at += n;
extern "C" __global__ void lanes(unsigned* out, const unsigned* a, const unsigned* b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned x = a[i], y = b[i];
    unsigned* at = out + i;
    BOTH(__vadd) BOTH(__vsub) BOTH(__vaddus) BOTH(__vsubus)
    BOTH(__vaddss) BOTH(__vsubss) BOTH(__vabsdiffu) BOTH(__vabsdiffs)
    BOTH(__vmaxu) BOTH(__vminu) BOTH(__vmaxs) BOTH(__vmins)
    BOTH(__vhaddu) BOTH(__vavgu) BOTH(__vcmpeq) BOTH(__vcmpne)
    BOTH(__vseteq) BOTH(__vsetne) BOTH(__vcmpgeu) BOTH(__vsetgeu)
    BOTH(__vcmpges) BOTH(__vsetges) BOTH(__vcmpgtu) BOTH(__vsetgtu)
    BOTH(__vcmpgts) BOTH(__vsetgts) BOTH(__vcmpleu) BOTH(__vsetleu)
    BOTH(__vcmples) BOTH(__vsetles) BOTH(__vcmpltu) BOTH(__vsetltu)
    BOTH(__vcmplts) BOTH(__vsetlts)
    BOTH(__vsads) BOTH(__vsadu)
    ONE(__vneg) ONE(__vnegss) ONE(__vabs) ONE(__vabsss)
}
