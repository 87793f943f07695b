import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { recipes, type Program, type Suite, suiteOf, suites } from "@holdfast/image/catalog.ts";
import { findHostEngines } from "@holdfast/image/host-engines.ts";
import { readManifest } from "@holdfast/image/image-manifest.ts";
import { openImageUses } from "@holdfast/image/image-uses.ts";
import { ensureImage, remakeImage } from "@holdfast/image/make-image.ts";
import { textLibrariesOf } from "@holdfast/image/text-libraries.ts";
import {
  findImage,
  type NodeImage,
  openImage,
  suiteOfImage,
  versionIn,
  versionOfImage,
} from "@holdfast/image/node-image.ts";
import type { Log } from "@holdfast/common/log.ts";
import { ComputeFailure, ComputePending } from "../compute-failure.ts";
import type { ImageFacts } from "../compute-provider.ts";
import type { HostAbilities } from "./host-abilities.ts";

export interface NodeImagesDeps {
  readonly imagesDir: string;
  /** Who says that an image is needed: the directory with the machines. */
  readonly holder: string;
  readonly abilities: HostAbilities;
  /** For engines installed on the host: PATH. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** What of a machine decides its image. */
export interface ImageChoice {
  readonly engine: string;
  readonly version: string;
  /** Absent or empty where none was chosen. */
  readonly image?: string;
}

/** Pure: what a machine is to run from this image; its suite says in which version. */
export function choiceOf({ engine, version }: ImageChoice, image: string): Required<ImageChoice> {
  return { engine, version: versionOfImage(image, engine) ?? version, image };
}

/** Which engine versions can run on this host, and out of which image. */
export interface NodeImages {
  /**
   * The image that was chosen, else the newest with this version; undefined where engines of the host run instead. Throws
   * ComputePending while it is made (begun by this call, in the background), and ComputeFailure when it cannot be.
   */
  require(choice: ImageChoice): NodeImage | undefined;
  /** The newest image with this version if it is made. */
  find(engine: string, version: string): NodeImage | undefined;
  facts(): ImageFacts[];
  /** Says that what has this id is needed from now on, an image or what virtual machines boot from. */
  use(id: string): void;
}

interface Making {
  step: string;
  failure: string | undefined;
}

export function createNodeImages({ imagesDir, holder, abilities, environment, log }: NodeImagesDeps): NodeImages {
  /** By suite, or by the id of an image that is made again. */
  const making = new Map<string, Making>();
  const uses = openImageUses(imagesDir, holder);
  const versions = new Map<string, string>();
  const told = new Map<string, Pick<ImageFacts, "textLibraries" | "madeAt">>();

  /** Begins it in the background, or throws what has come of it since: ComputePending or, once, ComputeFailure. */
  function underway(key: string, what: string, make: (progress: (line: string) => void) => Promise<unknown>): never {
    let current = making.get(key);
    if (current === undefined) {
      const begun: Making = { step: `making ${what}`, failure: undefined };
      const progress = (line: string) => {
        begun.step = line;
        log.info("node image", { image: key, step: line });
      };
      make(progress).then(
        () => making.delete(key),
        (error: unknown) => {
          begun.failure = error instanceof Error ? error.message : String(error);
          log.error("node image not made", { image: key, reason: begun.failure });
        },
      );
      making.set(key, begun);
      current = begun;
    }
    if (current.failure === undefined) throw new ComputePending(`${sentence(current.step)}.`);
    // The next one to ask tries again.
    making.delete(key);
    throw new ComputeFailure(`${sentence(what)} could not be made: ${current.failure}`);
  }

  /** An image never changes, and neither do its versions. */
  function fullVersionIn(id: string, engine: Program, version: string): string | undefined {
    const key = `${id} ${engine} ${version}`;
    const known = versions.get(key) ?? versionIn(imagesDir, id, engine, version);
    if (known !== undefined) versions.set(key, known);
    return known;
  }

  /** What its manifest tells; that does not change either once the image is made. */
  function manifestFacts(id: string): Pick<ImageFacts, "textLibraries" | "madeAt"> {
    const known = told.get(id);
    if (known !== undefined) return known;
    const manifest = readManifest(imagesDir, id);
    if (manifest === undefined) return {};
    const { made } = manifest;
    const facts = { textLibraries: textLibrariesOf(manifest), ...(made && { madeAt: made.at }) };
    if (made !== undefined) told.set(id, facts);
    return facts;
  }

  function hostHas(engine: string, version: string): boolean {
    if (!isProgram(engine)) return false;
    const found = findHostEngines(engine, environment);
    return found.some((host) => host.version === version || host.version === undefined);
  }

  function whyNot(engine: string, version: string): string | undefined {
    const suite = suiteOf(engine, version);
    if (abilities.isolation === "none") {
      if (abilities.noHostEngines) return `engines do not run as root, and ${abilities.reason}`;
      if (hostHas(engine, version)) return undefined;
      return `${engine} ${version} is not installed on the host, and ${abilities.reason ?? "namespaces are not used"}`;
    }
    if (suite === undefined) return `no node image has ${engine} ${version}`;
    if (findImage(imagesDir, suite) !== undefined || canMake(environment)) return undefined;
    return `the node image of ${suite} is not made; as root: apt-get install mmdebstrap`;
  }

  function chosenOne(id: string, engine: string, version: string): NodeImage {
    if (suiteOfImage(id) !== undefined && suiteOfImage(id) !== suiteOf(engine, version))
      throw new ComputeFailure(`The node image ${id} has no ${engine} ${version}.`);
    const image = openImage(imagesDir, id);
    if (image !== undefined) return image;
    if (readManifest(imagesDir, id) === undefined)
      throw new ComputeFailure(`The node image ${id} is not on this host.`);
    return underway(id, `the node image ${id}`, (progress) => remakeImage(imagesDir, id, { progress }));
  }

  function newestOne(suite: Suite): NodeImage {
    const make = (progress: (line: string) => void) => ensureImage({ imagesDir, suite, progress });
    return findImage(imagesDir, suite) ?? underway(suite, `the node image of ${suite}`, make);
  }

  function used(image: NodeImage): NodeImage {
    uses.add(image.id);
    return image;
  }

  return {
    use: uses.add,
    find(engine, version) {
      const suite = suiteOf(engine, version);
      return suite && findImage(imagesDir, suite);
    },
    require({ engine, version, image: chosen = "" }) {
      if (abilities.isolation !== "none" && chosen !== "") return used(chosenOne(chosen, engine, version));
      const reason = whyNot(engine, version);
      if (reason !== undefined) throw new ComputeFailure(`${sentence(reason)}.`);
      const suite = suiteOf(engine, version);
      if (abilities.isolation === "none" || suite === undefined) return undefined;
      return used(newestOne(suite));
    },
    facts: () =>
      suites
        .flatMap((suite) => recipes[suite].software)
        .filter(({ program }) => isEngine(program))
        .map(({ program: engine, version }): ImageFacts => {
          const reason = whyNot(engine, version);
          if (reason !== undefined) return { engine, version, available: false, reason };
          const suite = abilities.isolation === "none" ? undefined : suiteOf(engine, version);
          const image = suite && findImage(imagesDir, suite);
          const engineVersion = image && fullVersionIn(image.id, engine, version);
          return {
            engine,
            version,
            available: true,
            ...(image && { image: image.id }),
            ...(engineVersion && { engineVersion }),
            ...(image && manifestFacts(image.id)),
          };
        }),
  };
}

function isEngine(program: Program): boolean {
  return program !== "etcd";
}

function isProgram(engine: string): engine is Program {
  return suites.some((suite) => recipes[suite].software.some(({ program }) => program === engine));
}

/** What make-image needs: mmdebstrap, or the means to install it. */
function canMake(environment: NodeImagesDeps["environment"]): boolean {
  const isRoot = process.getuid?.() === 0;
  return isOnPath("mmdebstrap", environment) || (isRoot && isOnPath("apt-get", environment));
}

function isOnPath(program: string, environment: NodeImagesDeps["environment"]): boolean {
  return (environment["PATH"] ?? "").split(":").some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return directory !== "";
    } catch {
      // Not in this one.
      return false;
    }
  });
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
