/** Lets every Python that the tests start keep its compiled modules in .cache, outside of the sources. Programs that
 *  import pandas would otherwise compile it again in each process where PYTHONDONTWRITEBYTECODE is set or the installer
 *  compiled nothing: most of their time. */
import { resolve } from "node:path";

export default function setup(): void {
  delete process.env.PYTHONDONTWRITEBYTECODE;
  process.env.PYTHONPYCACHEPREFIX = resolve(".cache/bytecode");
}
