import { describeBlobStore } from "../../../test/contracts/blob-store.ts";
import { memoryStore } from "./memory-store.ts";

describeBlobStore("the memory store", async () => ({ open: async () => memoryStore(), persistent: false }));
