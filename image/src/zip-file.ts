import { type FileHandle, open } from "node:fs/promises";
import { inflateRawSync } from "node:zlib";

/** A file in a zip, as the zip's directory describes it. */
export interface ZipEntry {
  /** Path with slashes; it ends with one for a directory. */
  readonly name: string;
  readonly sizeBytes: number;
  readonly packedBytes: number;
  /** 0: stored; 8: deflated. */
  readonly method: number;
  readonly isEncrypted: boolean;
  /** True for a symbolic link, or another entry that is neither file nor directory. */
  readonly isSpecial: boolean;
  /** Offset of its header. */
  readonly at: number;
}

export interface ZipFile {
  readonly entries: readonly ZipEntry[];
  /** Contents of an entry. Throws a ZipFault for one that is damaged, or larger than `maxBytes`. */
  read(entry: ZipEntry, maxBytes: number): Promise<Buffer>;
  close(): Promise<void>;
}

/** The error of a file that is no zip, or one of a format that images do not read; the message has the reason. */
export class ZipFault extends Error {
  override readonly name = "ZipFault";
}

const endBytes = 22;
const commentMaxBytes = 65_535;
/** Maximum size of the directory: ten thousand entries with long names. */
const directoryMaxBytes = 4 << 20;
const [endSignature, entrySignature, headerSignature] = [0x0605_4b50, 0x0201_4b50, 0x0403_4b50];
const headerBytes = 30;
const entryBytes = 46;
const [fileType, directoryType, typeMask] = [0o100_000, 0o040_000, 0o170_000];

/** Opens a zip and reads its directory (APPNOTE 4.3), without ZIP64. Throws ZipFault. */
export async function openZip(path: string): Promise<ZipFile> {
  const file = await open(path, "r");
  try {
    const entries = await entriesOf(file);
    return {
      entries,
      read: (entry, maxBytes) => contentOf(file, entry, maxBytes),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function entriesOf(file: FileHandle): Promise<ZipEntry[]> {
  const { size } = await file.stat();
  const tail = await readAt(
    file,
    Math.max(0, size - endBytes - commentMaxBytes),
    Math.min(size, endBytes + commentMaxBytes),
  );
  let end = tail.length - endBytes;
  while (end >= 0 && tail.readUInt32LE(end) !== endSignature) end -= 1;
  if (end < 0) throw new ZipFault("it is no zip file");
  const [count, bytes, at] = [tail.readUInt16LE(end + 10), tail.readUInt32LE(end + 12), tail.readUInt32LE(end + 16)];
  if (count === 0xffff || at === 0xffff_ffff) throw new ZipFault("it is a ZIP64 file, which images do not read");
  if (bytes > directoryMaxBytes || at + bytes > size) throw new ZipFault("its directory is damaged");
  const directory = await readAt(file, at, bytes);
  const entries: ZipEntry[] = [];
  for (let offset = 0; entries.length < count; ) {
    if (offset + entryBytes > directory.length || directory.readUInt32LE(offset) !== entrySignature)
      throw new ZipFault("its directory is damaged");
    const nameBytes = directory.readUInt16LE(offset + 28);
    entries.push(entryAt(directory, offset, nameBytes));
    offset += entryBytes + nameBytes + directory.readUInt16LE(offset + 30) + directory.readUInt16LE(offset + 32);
  }
  return entries;
}

function entryAt(directory: Buffer, offset: number, nameBytes: number): ZipEntry {
  const name = directory.toString("utf8", offset + entryBytes, offset + entryBytes + nameBytes);
  const type = (directory.readUInt32LE(offset + 38) >>> 16) & typeMask;
  return {
    name,
    sizeBytes: directory.readUInt32LE(offset + 24),
    packedBytes: directory.readUInt32LE(offset + 20),
    method: directory.readUInt16LE(offset + 10),
    isEncrypted: (directory.readUInt16LE(offset + 8) & 1) !== 0,
    isSpecial: ![0, fileType, directoryType].includes(type),
    at: directory.readUInt32LE(offset + 42),
  };
}

async function contentOf(file: FileHandle, entry: ZipEntry, maxBytes: number): Promise<Buffer> {
  const { name, at, packedBytes, sizeBytes, method } = entry;
  const damaged = new ZipFault(`${name} in it is damaged`);
  if (sizeBytes > maxBytes || packedBytes > maxBytes)
    throw new ZipFault(`${name} in it has ${Math.max(sizeBytes, packedBytes)} bytes; the limit is ${maxBytes}`);
  const header = await readAt(file, at, headerBytes);
  if (header.length < headerBytes || header.readUInt32LE(0) !== headerSignature) throw damaged;
  const start = at + headerBytes + header.readUInt16LE(26) + header.readUInt16LE(28);
  const packed = await readAt(file, start, packedBytes);
  if (packed.length !== packedBytes) throw damaged;
  if (method === 0) return packed;
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(sizeBytes, 1) });
  } catch {
    throw damaged;
  }
}

/** The bytes from a position, fewer at the end of the file. */
async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}
