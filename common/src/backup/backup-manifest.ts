import { buffer } from "node:stream/consumers";
import { openStream, sealStream } from "../sealed/sealed-stream.ts";
import { type BackupPlace, manifestObject } from "./object-names.ts";

/** What a backup is made of: all that is to be known to open it, but its key. Sealed itself; the last object that is written. */
export interface BackupManifest {
  /** The second one has a base; readers that know only the first refuse it. */
  readonly format: typeof backupFormat | typeof incrementFormat;
  readonly service: string;
  readonly backup: string;
  readonly attempt: number;
  /** `full`: files of the engine; `incremental`: what of them changed since another one; `snapshot`: contents at one moment. */
  readonly kind: string;
  /** What an increment goes on from: it brings nothing back without it. */
  readonly base?: BackupBase;
  readonly engine: string;
  /** As the engine tells it, such as 17.11. */
  readonly version: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly endedAt: string;
  /** No later than the data: what was acknowledged before is in them. Of files, older versions noted when the last byte was read. */
  readonly dataTime: string;
  /** Null for an engine without a log. */
  readonly positions: BackupPositions | null;
  readonly streams: readonly BackupStream[];
  /** Digests of the pages of a stream's files (page-map.ts), named `<stream>.map`: for the next increment, not for a restore. */
  readonly maps?: readonly BackupStream[];
}

/** Another backup of the same service, and no other one in its place. */
export interface BackupBase {
  readonly backup: string;
  readonly attempt: number;
  /** Of its manifest as it is stored, hex. */
  readonly manifestSha256: string;
}

/** In the engine's own words. */
export interface BackupPositions {
  /** Timeline or its like. */
  readonly branch: string;
  /** Log is needed from here on. */
  readonly from: string;
  /** From here on the data is consistent. */
  readonly consistent: string;
}

export interface BackupStream {
  /** Names what the engine's driver makes of it, such as base.tar. */
  readonly name: string;
  /** Node that it came from. */
  readonly member: string;
  readonly codec: "zstd";
  /** Of the plain bytes. */
  readonly bytes: number;
  readonly sha256: string;
  readonly parts: readonly BackupPart[];
}

/** One object: a sealed stream with a piece of the compressed bytes. */
export interface BackupPart {
  readonly object: string;
  /** Of the object as it is stored. */
  readonly bytes: number;
  readonly sha256: string;
}

/** The key of a backup or of a log, by the name that headers know it by. */
export interface SealingKey {
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Uint8Array;
}

export const backupFormat = "holdfast backup 1";
export const incrementFormat = "holdfast backup 2";
export const partFormat = "holdfast backup part 1";
const manifestFormat = "holdfast backup manifest 1";
const largestManifestBytes = 64 << 20;

/** Labels of a sealed object of a backup: part or manifest. */
export function labelsOf(format: string, { service, backup }: BackupPlace, object: string) {
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

/** Throws for bytes that are not this attempt's manifest, sealed with this key. */
export async function openManifest(sealed: Uint8Array, place: BackupPlace, key: SealingKey): Promise<BackupManifest> {
  if (sealed.byteLength > largestManifestBytes) throw new Error("the manifest is too large");
  const expected = { ...labelsOf(manifestFormat, place, manifestObject(place)), keyVersion: key.id };
  const text = await buffer(openStream(chunk(sealed), expected, () => key.secret));
  const manifest = JSON.parse(text.toString("utf8")) as BackupManifest;
  if (manifest.format !== backupFormat && manifest.format !== incrementFormat)
    throw new Error(`the backup is a ${String(manifest.format)}, which this reader does not know`);
  if ((manifest.format === incrementFormat) !== (manifest.base !== undefined))
    throw new Error(`it is a ${manifest.format} with${manifest.base === undefined ? "out" : ""} a base`);
  const { service, backup, attempt } = manifest;
  if (service !== place.service || backup !== place.backup || attempt !== place.attempt) {
    throw new Error("the manifest is that of another backup");
  }
  return manifest;
}

async function* chunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
