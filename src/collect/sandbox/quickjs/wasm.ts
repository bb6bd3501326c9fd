/** The two constructors of WebAssembly used here, typed: the compiler's library for Node has its types only. */
interface WasmApi {
  compile(bytes: Uint8Array): Promise<WebAssembly.Module>;
  Memory: new (descriptor: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
}

export const wasm = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly;
