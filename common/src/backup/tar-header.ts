/** The fields of a tar entry (POSIX ustar) that an increment needs. */
export interface TarEntry {
  /** Path relative to the tar's root, without leading and trailing slashes; empty for the root. */
  readonly path: string;
  /** `other` is a type such as a link. */
  readonly kind: "file" | "directory" | "other";
  /** Permission bits. */
  readonly mode: number;
  /** Size of the content that follows, which is padded to full blocks. */
  readonly size: number;
}

export const tarBlockBytes = 512;

/** Parses a header; undefined for the block of zeros that ends a tar. Throws if it is invalid. */
export function readTarHeader(block: Buffer): TarEntry | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
  if (sum !== numberAt(block, 148, 8)) throw new Error("a tar header has a wrong checksum");
  const isUstar = block.subarray(257, 262).toString("latin1") === "ustar";
  const prefix = isUstar ? textAt(block, 345, 155) : "";
  const name = textAt(block, 0, 100);
  const kind = kindOf(block.readUInt8(156));
  const size = kind === "directory" ? 0 : numberAt(block, 124, 12);
  return {
    path: pathOf(prefix === "" ? name : `${prefix}/${name}`),
    kind,
    mode: numberAt(block, 100, 8) & 0o777,
    size,
  };
}

/** Number of padding bytes after content of this size. */
export function tarPaddingOf(size: number): number {
  return (tarBlockBytes - (size % tarBlockBytes)) % tarBlockBytes;
}

function kindOf(flag: number): TarEntry["kind"] {
  if (flag === 0 || flag === 0x30) return "file";
  return flag === 0x35 ? "directory" : "other";
}

/** Normalizes a path; throws if it leads out of the tar's root. */
function pathOf(name: string): string {
  const steps = name.split("/").filter((step, at) => !(step === "." || (step === "" && at > 0)));
  if (steps.some((step) => step === "" || step === "..")) throw new Error(`${name} is not a path within the tar`);
  return steps.join("/");
}

function textAt(block: Buffer, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return (end < 0 ? field : field.subarray(0, end)).toString("utf8");
}

/** Parses an octal number, or a binary one if the highest bit is set, as for large files (GNU tar). */
function numberAt(block: Buffer, at: number, length: number): number {
  if (block.readUInt8(at) >= 0x80) return block.readUIntBE(at + length - 6, 6);
  const text = textAt(block, at, length).trim();
  if (!/^[0-7]*$/.test(text)) throw new Error("a tar header has an invalid number");
  return text === "" ? 0 : Number.parseInt(text, 8);
}
