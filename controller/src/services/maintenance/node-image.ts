import type { Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/**
 * A node image that machines run from; its id is the image's. `createdAt` is the time it was first seen, which orders
 * images. A kernel of virtual machines is an image whose only engine is that of `guestLine`.
 */
export type NodeImageObject = Resource<NodeImageSpec, NodeImageStatus>;

export const nodeImageKind = defineKind<NodeImageObject>("node-image");

export interface NodeImageSpec {
  readonly engines: readonly EngineInImage[];
  /**
   * Versions of the libraries that define the sort order of text, by name, such as `{ "ICU": "72.1" }`; absent if
   * unknown.
   */
  readonly textLibraries?: Readonly<Record<string, string>>;
  /** Time of its first build on any host, in milliseconds since 1970; absent if unknown. */
  readonly madeAt?: number;
  /** Set by an operator: services change to this image, or a newer one, within the notice. */
  readonly urgent: ImageUrgency | null;
}

export interface EngineInImage {
  readonly engine: string;
  /** The version that users choose, such as `17`. */
  readonly version: string;
  /** Full version, such as `17.11`; empty if the provider does not report it. */
  readonly engineVersion: string;
}

export interface ImageUrgency {
  readonly noticeHours: number;
  /** For users: why it cannot wait for their windows. */
  readonly reason: string;
  readonly markedAt: number;
}

export interface NodeImageStatus {
  /** Lines for which new machines of some host get this image, as `lineOf` writes them. */
  readonly newestOf: readonly string[];
}

/** Name of a line, such as `postgresql 17`: services of one line can run from each other's images. */
export function lineOf(engine: string, version: string): string {
  return `${engine} ${version}`;
}

/** Full version of the engine in an image; empty if the image or its version is unknown. */
export function engineVersionIn(image: NodeImageObject | undefined, engine: string, version: string): string {
  const found = image?.spec.engines.find((one) => one.engine === engine && one.version === version);
  return found?.engineVersion ?? "";
}
