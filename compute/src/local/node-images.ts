import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import {
  appProgram,
  type Program,
  type RecipeName,
  recipeNames,
  recipeOf,
  recipes,
  softwareOf,
} from "@holdfast/image/catalog.ts";
import { findHostEngines } from "@holdfast/image/platform-program.ts";
import { readManifest } from "@holdfast/image/image-manifest.ts";
import { openImageUses } from "@holdfast/image/image-uses.ts";
import { ensureImage, remakeImage } from "@holdfast/image/make-image.ts";
import { type Additions, faultOf, noAdditions } from "@holdfast/image/additions.ts";
import { textLibrariesOf } from "@holdfast/image/text-libraries.ts";
import {
  findImage,
  type NodeImage,
  openImage,
  recipeOfImage,
  versionIn,
  versionOfImage,
} from "@holdfast/image/node-image.ts";
import type { Log } from "@holdfast/common/log.ts";
import { ComputeFailure, ComputePending } from "../compute-failure.ts";
import type { ImageFacts } from "../compute-provider.ts";
import type { HostAbilities } from "./host-abilities.ts";

export interface NodeImagesDeps {
  readonly imagesDir: string;
  /** Holder of the image uses (image-uses.ts): the directory with the machines. */
  readonly holder: string;
  readonly abilities: HostAbilities;
  /** Contents that the operator adds to images. */
  readonly additions?: Additions;
  /** Environment of engines that the host has installed: PATH. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** Fields of a machine that select its image. */
export interface ImageChoice {
  readonly engine: string;
  readonly version: string;
  /** Absent or empty if no image was chosen. */
  readonly image?: string;
}

/** The choice of a machine for this image, whose recipe determines the version. */
export function choiceOf({ engine, version }: ImageChoice, image: string): Required<ImageChoice> {
  return { engine, version: versionOfImage(image, engine) ?? version, image };
}

/** Node images of this host, by engine version. */
export interface NodeImages {
  /**
   * The chosen image, else the newest with this version; undefined if engines of the host run instead. Throws
   * ComputePending while it is built (this call starts the build in the background), and ComputeFailure if it cannot be
   * built.
   */
  require(choice: ImageChoice): NodeImage | undefined;
  /** The newest image with this version, if it is built. */
  find(engine: string, version: string): NodeImage | undefined;
  facts(): ImageFacts[];
  /** Records a use of the image or guest kernel with this id. */
  use(id: string): void;
}

interface Build {
  step: string;
  failure: string | undefined;
}

export function createNodeImages({
  imagesDir,
  holder,
  abilities,
  additions = noAdditions,
  environment,
  log,
}: NodeImagesDeps): NodeImages {
  /** Builds in progress by recipe, or by the id of an image that is built again. */
  const builds = new Map<string, Build>();
  const uses = openImageUses(imagesDir, holder);
  const versions = new Map<string, string>();
  const manifestCache = new Map<string, Pick<ImageFacts, "textLibraries" | "madeAt">>();

  /** Starts the build in the background, or throws its result so far: ComputePending or, once, ComputeFailure. */
  function awaitBuild(
    key: string,
    subject: string,
    make: (progress: (line: string) => void) => Promise<unknown>,
  ): never {
    let current = builds.get(key);
    if (current === undefined) {
      const build: Build = { step: `building ${subject}`, failure: undefined };
      const progress = (line: string) => {
        build.step = line;
        log.info("building node image", { image: key, step: line });
      };
      make(progress).then(
        () => builds.delete(key),
        (error: unknown) => {
          build.failure = error instanceof Error ? error.message : String(error);
          log.error("node image not built", { image: key, reason: build.failure });
        },
      );
      builds.set(key, build);
      current = build;
    }
    if (current.failure === undefined) throw new ComputePending(`${sentence(current.step)}.`);
    // The next request tries again.
    builds.delete(key);
    throw new ComputeFailure(`${sentence(subject)} could not be built: ${current.failure}`);
  }

  /** Cached: an image and its versions never change. */
  function fullVersionIn(id: string, engine: string, version: string): string | undefined {
    const key = `${id} ${engine} ${version}`;
    const cached = versions.get(key) ?? versionIn(imagesDir, id, engine, version);
    if (cached !== undefined) versions.set(key, cached);
    return cached;
  }

  /** Facts of the image's manifest, cached once the image is built. */
  function manifestFacts(id: string): Pick<ImageFacts, "textLibraries" | "madeAt"> {
    const cached = manifestCache.get(id);
    if (cached !== undefined) return cached;
    const manifest = readManifest(imagesDir, id);
    if (manifest === undefined) return {};
    const { made } = manifest;
    const facts = { textLibraries: textLibrariesOf(manifest), ...(made && { madeAt: made.at }) };
    if (made !== undefined) manifestCache.set(id, facts);
    return facts;
  }

  function hostHas(engine: string, version: string): boolean {
    if (!isProgram(engine)) return false;
    const found = findHostEngines(engine, version, environment);
    return found.some((host) => host.version === version || host.version === undefined);
  }

  function refusalOf(engine: string, version: string): string | undefined {
    const recipe = recipeOf(engine, version);
    if (abilities.isolation === "none") {
      if (abilities.refusesHostEngines) return `engines do not run as root, and ${abilities.reason}`;
      if (hostHas(engine, version)) return undefined;
      return `${engine} ${version} is not installed on the host, and ${abilities.reason ?? "namespaces are not used"}`;
    }
    if (recipe === undefined) return `no node image has ${engine} ${version}`;
    const fault = faultOf(recipe, additions);
    if (fault !== undefined) return `the image of ${recipe} cannot be built: ${fault}`;
    if (findImage(imagesDir, recipe, additions) !== undefined || canMake(environment)) return undefined;
    return `the node image of ${recipe} is not built; as root: apt-get install mmdebstrap`;
  }

  function chosenImage(id: string, engine: string, version: string): NodeImage {
    const recipe = recipeOfImage(id);
    if (recipe !== undefined && softwareOf(recipe, engine, version) === undefined)
      throw new ComputeFailure(`The node image ${id} has no ${engine} ${version}.`);
    const image = openImage(imagesDir, id);
    if (image !== undefined) return image;
    if (readManifest(imagesDir, id) === undefined)
      throw new ComputeFailure(`The node image ${id} is not on this host.`);
    return awaitBuild(id, `the node image ${id}`, (progress) => remakeImage(imagesDir, id, { progress }));
  }

  function newestImage(recipe: RecipeName): NodeImage {
    const make = (progress: (line: string) => void) => ensureImage({ imagesDir, recipe, additions, progress });
    return findImage(imagesDir, recipe, additions) ?? awaitBuild(recipe, `the node image of ${recipe}`, make);
  }

  function recordUse(image: NodeImage): NodeImage {
    uses.add(image.id);
    return image;
  }

  return {
    use: uses.add,
    find(engine, version) {
      const recipe = recipeOf(engine, version);
      return recipe && findImage(imagesDir, recipe, additions);
    },
    require({ engine, version, image: chosen = "" }) {
      if (abilities.isolation !== "none" && chosen !== "") return recordUse(chosenImage(chosen, engine, version));
      const reason = refusalOf(engine, version);
      if (reason !== undefined) throw new ComputeFailure(`${sentence(reason)}.`);
      const recipe = recipeOf(engine, version);
      if (abilities.isolation === "none" || recipe === undefined) return undefined;
      return recordUse(newestImage(recipe));
    },
    facts: () =>
      recipeNames
        // A version that several recipes have is offered once.
        .flatMap((recipe) => recipes[recipe].software.filter((each) => recipeOf(each.program, each.version) === recipe))
        .filter(({ program }) => isEngine(program) || program === appProgram)
        .map(({ program: engine, version }): ImageFacts => {
          const reason =
            engine === appProgram && abilities.isolation !== "root" ? needsRoot : refusalOf(engine, version);
          if (reason !== undefined) return { engine, version, available: false, reason };
          const recipe = abilities.isolation === "none" ? undefined : recipeOf(engine, version);
          const image = recipe && findImage(imagesDir, recipe, additions);
          const added = (recipe && additions[recipe]?.artifacts) ?? [];
          const plugins = added.filter(({ kind }) => kind === "plugin").map(({ name }) => name);
          const engineVersion = image && fullVersionIn(image.id, engine, version);
          return {
            engine,
            version,
            available: true,
            ...(image && { image: image.id }),
            ...(engineVersion && { engineVersion }),
            ...(image && manifestFacts(image.id)),
            ...(plugins.length > 0 && { plugins }),
          };
        }),
  };
}

const needsRoot = "containers of apps need a host program that runs as root";

/** True for an engine, false for a program of the platform itself. */
function isEngine(program: string): boolean {
  return engineOf(program) !== undefined;
}

function isProgram(engine: string): engine is Program {
  return recipeNames.some((recipe) => recipes[recipe].software.some(({ program }) => program === engine));
}

/** True if make-image can run: mmdebstrap, or the means to install it. */
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
      // Not in this directory.
      return false;
    }
  });
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
