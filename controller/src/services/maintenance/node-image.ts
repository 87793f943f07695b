import type { Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/**
 * A node image that machines can run from, as the platform came to know it; its id is the image's. `createdAt` is when it was
 * first seen, by which images are older and newer. A kernel of virtual machines is one whose only engine is that of guestLine.
 */
export type NodeImageObject = Resource<NodeImageSpec, NodeImageStatus>;

export const nodeImageKind = defineKind<NodeImageObject>("node-image");

export interface NodeImageSpec {
  readonly engines: readonly EngineInImage[];
  /** Versions of the libraries that order texts, by name; absent where that is not known. */
  readonly textLibraries?: Readonly<Record<string, string>>;
  /** When it was made first, on whichever host; absent where that is not known. */
  readonly madeAt?: number;
  /** Set by an operator: services go over to this image or a newer one within the notice. */
  readonly urgent: ImageUrgency | null;
}

export interface EngineInImage {
  readonly engine: string;
  /** As users write it: `17`. */
  readonly version: string;
  /** Full version, such as `17.11`; empty where the provider does not tell. */
  readonly engineVersion: string;
}

export interface ImageUrgency {
  readonly noticeHours: number;
  /** For users: why it cannot wait for their windows. */
  readonly reason: string;
  readonly markedAt: number;
}

export interface NodeImageStatus {
  /** Engines and versions that new machines of some host get this image for, as `lineOf` writes them. */
  readonly newestOf: readonly string[];
}

/** An engine in one of its versions: services of one line take each other's images. */
export function lineOf(engine: string, version: string): string {
  return `${engine} ${version}`;
}

/** Full version of the engine in an image; empty when the image or its version is not known. */
export function engineVersionIn(image: NodeImageObject | undefined, engine: string, version: string): string {
  const found = image?.spec.engines.find((one) => one.engine === engine && one.version === version);
  return found?.engineVersion ?? "";
}
