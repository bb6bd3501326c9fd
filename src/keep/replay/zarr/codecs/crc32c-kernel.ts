/** The hot loops of CRC-32C as a WebAssembly SIMD module, assembled here by hand (about 600 bytes).
 *  Out: two foldings, each of which rewrites a message into a far shorter one with the same CRC. Knows no CRC tables.
 *
 *  WebAssembly has no carry-less multiply. But a CRC is a remainder modulo P(x), and P divides sparse polynomials such
 *  as x^(8a) + x^(8b) + x^(8c) + 1 (found by exhaustive search, checked by a test). So a block of the message may be
 *  dropped once it is xor-ed in `a−b`, `a−c` and `a` bytes later. That takes three loads and three xors per 16 bytes,
 *  no tables, no shifts. The idea is that of "Chorba" (Russell, arXiv:2412.16398). */

export interface Folding {
  /** P divides the sum of x^(8·exponent); the last exponent is 0. */
  readonly exponents: readonly number[];
  /** Number of bytes after which a block has no more influence: the first exponent. */
  readonly reach: number;
  /** Bytes per iteration of the loop: at most the distance of the first two exponents, so that its blocks are
   *  independent. */
  readonly stride: number;
}

/** For messages much longer than 5 KB. Shorter multiples with four terms exist. This one's first exponent is a multiple
 *  of 16, which keeps a third of the loads aligned. */
export const LONG: Folding = { exponents: [5424, 4146, 3859, 0], reach: 5424, stride: 128 };
/** For the remaining bytes: half as fast, but folds down to 209 bytes. */
export const SHORT: Folding = { exponents: [209, 144, 54, 39, 14, 0], reach: 209, stride: 64 };

/** Xors each block of the source up to `end` with earlier blocks of the history, and writes the result to the target.
 *  `history` is the position that corresponds to `source`. While folding, the target becomes the history, so both are
 *  the same; only the last call has another target. The length is a multiple of the stride. */
export type FoldCrc = (source: number, end: number, target: number, history: number) => void;

interface FoldKernel {
  memory: { readonly buffer: ArrayBuffer };
  foldLong: FoldCrc;
  foldShort: FoldCrc;
}

export function instantiateFoldKernel(pages: number): FoldKernel {
  return new WebAssembly.Instance(new WebAssembly.Module(assemble(pages))).exports;
}

/** Node's types declare WebAssembly only together with the browser's types. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: {
    Module: new (code: Uint8Array) => object;
    Instance: new (module: object) => { exports: FoldKernel };
  };
};

// Opcodes of the WebAssembly core specification, section 5.4.
const LOCAL_GET = 0x20;
const LOCAL_SET = 0x21;
const I32_CONST = 0x41;
const I32_ADD = 0x6a;
const I32_SUB = 0x6b;
const I32_LT_U = 0x49;
const LOOP = 0x03;
const BR_IF = 0x0d;
const END = 0x0b;
const VOID = 0x40;
const I32 = 0x7f;
const V128_LOAD = [0xfd, 0x00];
const V128_STORE = [0xfd, 0x0b];
const V128_XOR = [0xfd, 0x51];
const BLOCK = 16;
const [SOURCE, SOURCE_END, TARGET, HISTORY] = [0, 1, 2, 3];

function assemble(pages: number): Uint8Array<ArrayBuffer> {
  const bodies = [LONG, SHORT].flatMap((folding) => {
    const body = [0, ...foldBody(folding), END];
    return [...unsigned(body.length), ...body];
  });
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 4, I32, I32, I32, I32, 0]),
    ...section(3, [2, 0, 0]),
    ...section(5, [1, 0, ...unsigned(pages)]),
    ...section(7, [3, ...name("memory"), 2, 0, ...name("foldLong"), 0, 0, ...name("foldShort"), 0, 1]),
    ...section(10, [2, ...bodies]),
  ]);
}

/** First moves `history` back by the reach, because load offsets are unsigned. The offsets forward from there are then
 *  the exponents themselves. */
function foldBody({ exponents, reach, stride }: Folding): number[] {
  const code = [LOCAL_GET, HISTORY, I32_CONST, ...signed(reach), I32_SUB, LOCAL_SET, HISTORY, LOOP, VOID];
  for (let block = 0; block < stride; block += BLOCK) {
    code.push(LOCAL_GET, TARGET, LOCAL_GET, SOURCE, ...V128_LOAD, 0, ...unsigned(block));
    for (const exponent of exponents.slice(1))
      code.push(LOCAL_GET, HISTORY, ...V128_LOAD, 0, ...unsigned(block + exponent), ...V128_XOR);
    code.push(...V128_STORE, 0, ...unsigned(block));
  }
  for (const pointer of [SOURCE, TARGET, HISTORY])
    code.push(LOCAL_GET, pointer, I32_CONST, ...signed(stride), I32_ADD, LOCAL_SET, pointer);
  return [...code, LOCAL_GET, SOURCE, LOCAL_GET, SOURCE_END, I32_LT_U, BR_IF, 0, END];
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function name(text: string): number[] {
  return [text.length, ...Buffer.from(text)];
}

/** Unsigned LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** Signed LEB128 of a number ≥ 0: bit 6 of the last byte is the sign and must stay clear. */
function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >>> 7)];
}
