import type { Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/**
 * A node image from which machines run; the id is the image's. `createdAt` is the time at which a controller first saw
 * it. A kernel of virtual machines is an image with one engine, the engine of `guestKernelSeries`.
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
  /** Time of the image's first build on any host, in milliseconds since 1970; absent if unknown. */
  readonly madeAt?: number;
  /** Set by an operator so that services change to this image, or a newer one, within the notice; null otherwise. */
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
  /** Reason, for users, why the update cannot wait for their maintenance windows. */
  readonly reason: string;
  readonly markedAt: number;
}

export interface NodeImageStatus {
  /** Names (`seriesNameOf`) of the series of which at least one host has this image as its newest. */
  readonly newestOf: readonly string[];
}

/** Name of a series, such as `postgresql 17`. Images of one series can replace each other. */
export function seriesNameOf(engine: string, version: string): string {
  return `${engine} ${version}`;
}

/** Full version of the engine in an image; empty if the image or its version is unknown. */
export function engineVersionIn(image: NodeImageObject | undefined, engine: string, version: string): string {
  const found = image?.spec.engines.find((entry) => entry.engine === engine && entry.version === version);
  return found?.engineVersion ?? "";
}
