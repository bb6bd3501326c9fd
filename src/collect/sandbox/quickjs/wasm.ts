/** Types for the parts of WebAssembly used here. Node's types lack them, and browser types do not belong here. */

export interface WasmModule {
  readonly [Symbol.toStringTag]: "WebAssembly.Module";
}

interface WasmApi {
  compile(bytes: Uint8Array): Promise<WasmModule>;
  Memory: new (descriptor: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
}

export const wasm = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly;
