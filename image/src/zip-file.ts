import { buffer } from "node:stream/consumers";
import yauzl from "yauzl";

/** A file in a zip, as the zip's directory describes it. */
export interface ZipEntry {
  /** Path with slashes; it ends with one for a directory. */
  readonly name: string;
  readonly sizeBytes: number;
  /** 0: stored; 8: deflated. */
  readonly method: number;
  readonly isEncrypted: boolean;
  /** True for a symbolic link, or another entry that is neither file nor directory. */
  readonly isSpecial: boolean;
}

export interface ZipFile {
  readonly entries: readonly ZipEntry[];
  /** Contents of one of these entries. Throws a ZipFault for one that is damaged, or larger than `maxBytes`. */
  read(entry: ZipEntry, maxBytes: number): Promise<Buffer>;
  close(): Promise<void>;
}

/** The error of a file that is no zip, or that is damaged; the message has the reason. */
export class ZipFault extends Error {
  override readonly name = "ZipFault";
}

const [fileType, directoryType, typeMask] = [0o100_000, 0o040_000, 0o170_000];

/** Opens a zip and reads its directory, up to one entry more than `entriesMax`. Throws ZipFault. */
export async function openZip(path: string, entriesMax: number): Promise<ZipFile> {
  // Names are the bytes of the directory: no other field may replace them.
  const options = { lazyEntries: true, autoClose: false, decodeStrings: false } as const;
  const zip = await yauzl.openPromise(path, options).catch((error: unknown) => {
    if (error instanceof Error && "code" in error) throw error;
    throw new ZipFault("it is no zip file", { cause: error });
  });
  const found = new Map<ZipEntry, yauzl.Entry>();
  try {
    for await (const entry of zip.eachEntry()) {
      found.set(entryOf(entry), entry);
      if (found.size > entriesMax) break;
    }
  } catch (error) {
    zip.close();
    throw new ZipFault("its directory is damaged", { cause: error });
  }
  return {
    entries: [...found.keys()],
    async read(entry, maxBytes) {
      const { name, sizeBytes } = entry;
      if (sizeBytes > maxBytes) throw new ZipFault(`${name} in it has ${sizeBytes} bytes; the limit is ${maxBytes}`);
      try {
        return await buffer(await zip.openReadStreamPromise(found.get(entry) as yauzl.Entry));
      } catch (error) {
        throw new ZipFault(`${name} in it is damaged`, { cause: error });
      }
    },
    close: async () => zip.close(),
  };
}

function entryOf(entry: yauzl.Entry): ZipEntry {
  const type = (entry.externalFileAttributes >>> 16) & typeMask;
  return {
    name: entry.fileNameRaw.toString("utf8"),
    sizeBytes: entry.uncompressedSize,
    method: entry.compressionMethod,
    isEncrypted: entry.isEncrypted(),
    isSpecial: ![0, fileType, directoryType].includes(type),
  };
}
