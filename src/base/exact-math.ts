/** exp, log and related functions from +, −, ×, ÷ and bit operations alone: the same bits on every engine and machine.
 *  `Math.exp` and `Math.log` may differ between engines in the last bit, and one bit changes a digest. Method: argument
 *  reduction and minimax polynomials of fdlibm (Sun Microsystems, 1993); error below 1 ulp. Math.sqrt, Math.abs and
 *  Math.floor are exact by IEEE 754 and need no replacement. */

export function exp(x: number): number {
  if (Number.isNaN(x)) return x;
  if (x > 709.782712893384) return Number.POSITIVE_INFINITY;
  if (x < -745.1332191019411) return 0;
  if (x < TINY && x > -TINY) return 1 + x;
  // x = k·ln2 + r with |r| ≤ ln2/2; ln2 is split in two so that k·LN2_HIGH is exact.
  const k = x < LN2_HALF && x > -LN2_HALF ? 0 : (x * INVERSE_LN2 + (x < 0 ? -0.5 : 0.5)) | 0;
  const high = x - k * LN2_HIGH;
  const low = k * LN2_LOW;
  const r = high - low;
  const t = r * r;
  const c = r - t * (P1 + t * (P2 + t * (P3 + t * (P4 + t * P5))));
  if (k === 0) return 1 - ((r * c) / (c - 2) - r);
  return timesPowerOfTwo(1 - (low - (r * c) / (2 - c) - high), k);
}

export function log(x: number): number {
  if (!(x > 0)) return x === 0 ? Number.NEGATIVE_INFINITY : Number.NaN;
  if (x === Number.POSITIVE_INFINITY) return x;
  let k = 0;
  if (x < SMALLEST_NORMAL) {
    x *= 18014398509481984; // 2^54
    k = -54;
  }
  // x = 2^k · (1 + f) with √½ < 1 + f < √2.
  DOUBLE[0] = x;
  const head = WORDS[HIGH]! & 0x7fffffff;
  const mantissa = head & 0xfffff;
  const carry = (mantissa + 0x95f64) & 0x100000;
  k += (head >> 20) - 1023 + (carry >> 20);
  WORDS[HIGH] = mantissa | (carry ^ 0x3ff00000);
  const f = DOUBLE[0]! - 1;
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const odd = w * (L2 + w * (L4 + w * L6));
  const even = z * (L1 + w * (L3 + w * (L5 + w * L7)));
  // Away from 1 the square is subtracted separately, which keeps its low bits.
  if (((mantissa - 0x6147a) | (0x6b851 - mantissa)) <= 0)
    return k * LN2_HIGH - (s * (f - (odd + even)) - k * LN2_LOW - f);
  const half = 0.5 * f * f;
  return k * LN2_HIGH - (half - (s * (half + (odd + even)) + k * LN2_LOW) - f);
}

/** log(1 + x) that stays accurate for small x. The quotient undoes the rounding of 1 + x (Goldberg, 1991). */
export function log1p(x: number): number {
  const u = 1 + x;
  return u === 1 ? x : u === Number.POSITIVE_INFINITY ? u : log(u) * (x / (u - 1));
}

/** Turns the scores in `values[from … from+count)` into probabilities, in place. */
export function softmax(values: Float64Array, from = 0, count = values.length - from): Float64Array {
  let top = Number.NEGATIVE_INFINITY;
  for (let i = from; i < from + count; i++) if (values[i]! > top) top = values[i]!;
  let sum = 0;
  for (let i = from; i < from + count; i++) {
    values[i] = exp(values[i]! - top);
    sum += values[i]!;
  }
  for (let i = from; i < from + count; i++) values[i] = values[i]! / sum;
  return values;
}

const TINY = 3.725290298461914e-9; // 2^−28
const SMALLEST_NORMAL = 2.2250738585072014e-308; // 2^−1022
const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
const LN2_HALF = 0.34657359027997264;
const INVERSE_LN2 = Math.LOG2E;
const P1 = 0.16666666666666602;
const P2 = -0.0027777777777015593;
const P3 = 6.613756321437934e-5;
const P4 = -1.6533902205465252e-6;
const P5 = 4.1381367970572385e-8;
const L1 = 0.6666666666666735;
const L2 = 0.3999999999940942;
const L3 = 0.2857142874366239;
const L4 = 0.22222198432149784;
const L5 = 0.1818357216161805;
const L6 = 0.15313837699209373;
const L7 = 0.14798198605116586;

const DOUBLE = new Float64Array(1);
const WORDS = new Int32Array(DOUBLE.buffer);
/** Index of the word with sign and exponent; arrays.ts refuses big-endian machines. */
const HIGH = 1;

/** 2^k at index k + 1022. */
const POWERS = new Float64Array(2046).fill(SMALLEST_NORMAL);
for (let i = 1; i < POWERS.length; i++) POWERS[i] = POWERS[i - 1]! * 2;

/** y·2^k, rounded once even if the result is subnormal. y is in (0.5, 2). */
function timesPowerOfTwo(y: number, k: number): number {
  if (k > 1023) return y * 2 * POWERS[k + 1021]!;
  if (k >= -1021) return y * POWERS[k + 1022]!;
  return y * POWERS[k + 2022]! * POWERS[22]!;
}
