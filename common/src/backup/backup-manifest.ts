import { buffer } from "node:stream/consumers";
import { openStream, sealStream } from "../sealed/sealed-stream.ts";
import { type BackupLocation, manifestObject } from "./object-names.ts";

/**
 * Metadata of a backup: everything needed to open it, except its key. It is sealed, and it is the last object to be
 * written. Example in docs/reference/backup-format.md.
 */
export interface BackupManifest {
  /** `incrementFormat` for a backup with a base; readers that support only `backupFormat` reject it. */
  readonly format: typeof backupFormat | typeof incrementFormat;
  readonly service: string;
  readonly backup: string;
  readonly attempt: number;
  /**
   * `full`: the engine's files; `incremental`: files that changed since another backup; `snapshot`: contents at one
   * time.
   */
  readonly kind: string;
  /** The backup that an increment is based on; required to restore it. */
  readonly base?: BackupBase;
  readonly engine: string;
  /** Version that the engine reports, such as 17.11. */
  readonly version: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly endedAt: string;
  /** A lower bound of the data's age: every write that was acknowledged before is included. RFC 3339. */
  readonly dataTime: string;
  /** Null for an engine without a log. */
  readonly positions: BackupPositions | null;
  readonly streams: readonly BackupStream[];
  /**
   * Page maps of the streams' files (page-map.ts), named `<stream>.map`. The next increment needs them, a restore does
   * not.
   */
  readonly maps?: readonly BackupStream[];
}

/** Identifies another backup of the same service by its content. */
export interface BackupBase {
  readonly backup: string;
  readonly attempt: number;
  /** SHA-256 of its manifest object, hex. */
  readonly manifestSha256: string;
}

/** Positions in the engine's log, such as `0/2000028`. */
export interface BackupPositions {
  /** Timeline, or the engine's equivalent. */
  readonly branch: string;
  /** Start of the log that a restore needs. */
  readonly from: string;
  /** Position from which the data is consistent. */
  readonly consistent: string;
}

export interface BackupStream {
  /** Name that the engine's driver interprets, such as base.tar. */
  readonly name: string;
  /** Node that was backed up. */
  readonly member: string;
  readonly codec: "zstd";
  /** Size of the plain bytes. */
  readonly bytes: number;
  readonly sha256: string;
  readonly parts: readonly BackupPart[];
}

/** One object: a sealed stream with a piece of the compressed bytes. */
export interface BackupPart {
  readonly object: string;
  /** Size of the stored object. */
  readonly bytes: number;
  readonly sha256: string;
}

/** Data key of a backup or log, with the id by which headers refer to it. */
export interface SealingKey {
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Uint8Array;
}

export const backupFormat = "holdfast backup 1";
export const incrementFormat = "holdfast backup 2";
export const partFormat = "holdfast backup part 1";
const manifestFormat = "holdfast backup manifest 1";
const maxManifestBytes = 64 << 20;

/** Header labels of a sealed part or manifest. */
export function labelsOf(format: string, { service, backup }: BackupLocation, object: string) {
  return { format, service, backup, object };
}

export function sealManifest(
  manifest: BackupManifest,
  key: SealingKey,
  random?: (bytes: number) => Buffer,
): Promise<Buffer> {
  const header = { ...labelsOf(manifestFormat, manifest, manifestObject(manifest)), keyVersion: key.id };
  return buffer(sealStream(chunk(Buffer.from(JSON.stringify(manifest))), header, () => key.secret, random));
}

/** Opens a manifest. Throws unless it is the manifest of this attempt, sealed with this key. */
export async function openManifest(
  sealed: Uint8Array,
  location: BackupLocation,
  key: SealingKey,
): Promise<BackupManifest> {
  if (sealed.byteLength > maxManifestBytes) throw new Error("the manifest is too large");
  const expected = { ...labelsOf(manifestFormat, location, manifestObject(location)), keyVersion: key.id };
  const text = await buffer(openStream(chunk(sealed), expected, () => key.secret));
  const manifest = JSON.parse(text.toString("utf8")) as BackupManifest;
  if (manifest.format !== backupFormat && manifest.format !== incrementFormat)
    throw new Error(`the backup is a ${String(manifest.format)}, which this reader does not support`);
  if ((manifest.format === incrementFormat) !== (manifest.base !== undefined))
    throw new Error(`it is a ${manifest.format} with${manifest.base === undefined ? "out" : ""} a base`);
  const { service, backup, attempt } = manifest;
  if (service !== location.service || backup !== location.backup || attempt !== location.attempt) {
    throw new Error("the manifest is that of another backup");
  }
  return manifest;
}

async function* chunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
