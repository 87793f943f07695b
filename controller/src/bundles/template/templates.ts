import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { parseTemplate, type Template } from "./template.ts";

/** The templates of one kind of bundle. */
export interface Templates {
  /** The newest version of each template, sorted by name. */
  readonly newest: readonly Template[];
  /** Throws TEMPLATE_NOT_FOUND. */
  require(name: string): Template;
}

/** Directory of the platform's templates. */
const platformDirectory = join(import.meta.dirname, "../../../templates");

/**
 * Reads `<directory>/<kind>/<name>/<version>.yaml` from the platform's and the operator's directory; the latter adds
 * versions and templates. Throws for an invalid file, so that the controller does not start.
 */
export async function readTemplates(kind: "stacks" | "pipelines", operatorDirectory: string): Promise<Templates> {
  const directories = [
    join(platformDirectory, kind),
    ...(operatorDirectory === "" ? [] : [join(operatorDirectory, kind)]),
  ];
  const all = (await Promise.all(directories.map(templatesIn))).flat();
  return templatesOf(all);
}

/** Selects the newest version of each template. */
function templatesOf(all: readonly Template[]): Templates {
  const newest = new Map<string, Template>();
  for (const template of all) {
    const previous = newest.get(template.name);
    if (previous === undefined || isNewer(template.version, previous.version)) newest.set(template.name, template);
  }
  return {
    newest: [...newest.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    require(name) {
      const template = newest.get(name);
      if (template === undefined) throw new HoldfastError("TEMPLATE_NOT_FOUND", `There is no template ${name}.`);
      return template;
    },
  };
}

function isNewer(version: string, than: string): boolean {
  return version.localeCompare(than, "en", { numeric: true }) > 0;
}

async function templatesIn(directory: string): Promise<Template[]> {
  const names = await entriesOf(directory);
  const found = await Promise.all(
    names.map(async (name) => {
      const files = (await entriesOf(join(directory, name))).filter((file) => file.endsWith(".yaml"));
      return Promise.all(
        files.map(async (file) =>
          parseTemplate(name, file.slice(0, -".yaml".length), await readFile(join(directory, name, file), "utf8")),
        ),
      );
    }),
  );
  return found.flat();
}

async function entriesOf(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
