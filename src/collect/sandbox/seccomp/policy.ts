/** The system calls that a task may not make: one policy, rendered as a BPF program (bpf.ts, for bubblewrap) and as an
 *  OCI profile (oci.ts, for Docker). Denied: calls that reach the kernel's administration, other processes, namespaces,
 *  keys, or state that outlives the task. Calls newer than the table do not exist for a task. */

export type Arch = "x64" | "arm64";

export const EPERM = 1;
export const ENOSYS = 38;
export const EAFNOSUPPORT = 97;

/** The newest call in the review of this table (mseal, Linux 6.10). Later numbers return ENOSYS. */
export const LAST_REVIEWED = 462;

/** name: [x64, arm64]. Undefined if the architecture has no such call. */
const NUMBERS: Readonly<Record<string, readonly [number | undefined, number | undefined]>> = {
  _sysctl: [156, undefined],
  acct: [163, 89],
  add_key: [248, 217],
  bpf: [321, 280],
  chroot: [161, 51],
  clock_adjtime: [305, 266],
  clock_settime: [227, 112],
  create_module: [174, undefined],
  delete_module: [176, 106],
  fanotify_init: [300, 262],
  finit_module: [313, 273],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fsopen: [430, 430],
  fspick: [433, 433],
  get_mempolicy: [239, 236],
  init_module: [175, 105],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  io_uring_setup: [425, 425],
  ioperm: [173, undefined],
  iopl: [172, undefined],
  kcmp: [312, 272],
  kexec_file_load: [320, 294],
  kexec_load: [246, 104],
  keyctl: [250, 219],
  listmount: [458, 458],
  lookup_dcookie: [212, 18],
  mbind: [237, 235],
  memfd_secret: [447, 447],
  migrate_pages: [256, 238],
  mount: [165, 40],
  mount_setattr: [442, 442],
  move_mount: [429, 429],
  move_pages: [279, 239],
  mq_open: [240, 180],
  msgget: [68, 186],
  name_to_handle_at: [303, 264],
  nfsservctl: [180, 42],
  open_by_handle_at: [304, 265],
  open_tree: [428, 428],
  perf_event_open: [298, 241],
  personality: [135, 92],
  pidfd_getfd: [438, 438],
  pivot_root: [155, 41],
  process_madvise: [440, 440],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  ptrace: [101, 117],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  reboot: [169, 142],
  request_key: [249, 218],
  semget: [64, 190],
  set_mempolicy: [238, 237],
  set_mempolicy_home_node: [450, 450],
  setdomainname: [171, 162],
  sethostname: [170, 161],
  setns: [308, 268],
  settimeofday: [164, 170],
  shmget: [29, 194],
  statmount: [457, 457],
  swapoff: [168, 225],
  swapon: [167, 224],
  sysfs: [139, undefined],
  syslog: [103, 116],
  umount2: [166, 39],
  unshare: [272, 97],
  uselib: [134, undefined],
  userfaultfd: [323, 282],
  ustat: [136, undefined],
  vhangup: [153, 58],
  // Checked by argument, below.
  clone: [56, 220],
  clone3: [435, 435],
  ioctl: [16, 29],
  socket: [41, 198],
  socketpair: [53, 199],
};

const BY_ARGUMENT = new Set(["clone", "clone3", "ioctl", "socket", "socketpair"]);

export const DENIED: readonly string[] = Object.keys(NUMBERS).filter((name) => !BY_ARGUMENT.has(name));

/** clone with any of these flags makes a namespace. clone3 hides its flags in memory, so it returns ENOSYS. The C
 *  library then falls back to clone. */
export const NAMESPACE_FLAGS: readonly number[] = [
  0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
];

/** Only Unix and internet sockets: the network namespace is empty, but vsock, for example, ignores namespaces. */
export const SOCKET_FAMILIES: readonly number[] = [1, 2, 10];

/** TIOCSTI and TIOCLINUX insert input into a terminal. */
export const DENIED_IOCTLS: readonly number[] = [0x5412, 0x541c];

export function numberOf(name: string, arch: Arch): number | undefined {
  return NUMBERS[name]?.[arch === "x64" ? 0 : 1];
}
