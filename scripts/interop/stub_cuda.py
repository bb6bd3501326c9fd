"""Makes torch load without CUDA: builds stubs for libraries that a CUDA build names and a CPU never calls.

In: a site-packages folder with torch. Out: stub libraries in torch/lib for every NEEDED name without a file. Every
function of a stub returns 0. cudart, cupti and cufile must be the real libraries, because torch calls them as it loads.
"""

import os
import re
import subprocess
import sys
import tempfile

SYSTEM = re.compile(r"^(ld-linux|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp)\.so)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(site):
    folder = os.path.join(site, "torch", "lib")
    libraries = [os.path.join(folder, name) for name in os.listdir(folder) if ".so" in name]
    real = [os.path.join(root, name) for root, _, names in os.walk(os.path.join(site, "nvidia")) for name in names if ".so" in name]
    have = {os.path.basename(path) for path in [*libraries, *real]}
    needed, undefined, defined, files = set(), {}, set(), {}
    for path in libraries:
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path)))
        for name, version in re.findall(r" U ([^@\s]+)(?:@+(\S+))?", output("nm", "-D", "--undefined-only", path)):
            undefined.setdefault(name, version)
        for line in output("readelf", "-VW", path).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            elif found := re.search(r"Name: (\S+)", line):
                files[found[1]] = library
    for path in [*libraries, *real]:
        defined |= {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", path).splitlines() if line}
    missing = sorted(name for name in needed if name not in have and not SYSTEM.match(name))
    wanted = {name: version for name, version in undefined.items() if name not in defined and re.match(r"^(cu|nccl|nvrtc|nvshmem)", name)}
    for index, library in enumerate(missing):
        # A versioned symbol belongs to the library that its version names. Other symbols may be in any library.
        own = {name: version for name, version in wanted.items() if (files.get(version) == library if version else index == 0)}
        build(os.path.join(folder, library), library, own)
    print(f"{len(missing)} stub libraries with {len(wanted)} functions in {folder}")


def build(path, soname, symbols):
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, "stub.c"), os.path.join(work, "stub.map")
        with open(source, "w") as file:
            file.writelines(f"int {name}(void) {{ return 0; }}\n" for name in symbols)
        with open(script, "w") as file:
            for version in {each for each in symbols.values() if each}:
                file.write(f"{version} {{ global: {' '.join(name + ';' for name in symbols if symbols[name] == version)} }};\n")
        flags = [f"-Wl,--version-script={script}"] if any(symbols.values()) else []
        subprocess.run(["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{soname}", *flags, "-o", path, source], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
