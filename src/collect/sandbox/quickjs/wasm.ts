/** The parts of WebAssembly used here, typed: the types for Node alone have none, and those for browsers do not belong
 *  in this package. */

/** A compiled WebAssembly.Module. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: "WebAssembly.Module";
}

interface WasmApi {
  compile(bytes: Uint8Array): Promise<WasmModule>;
  Memory: new (descriptor: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
}

export const wasm = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly;
