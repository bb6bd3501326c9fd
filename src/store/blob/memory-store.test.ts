import { describeBlobStore } from "./blob-store.contract.ts";
import { memoryStore } from "./memory-store.ts";

describeBlobStore("the memory store", async () => ({ open: async () => memoryStore(), persistent: false }));
