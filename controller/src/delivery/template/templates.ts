import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { parseTemplate, type Template } from "./template.ts";

/** Templates of one face, by name and version. */
export interface Templates {
  /** The newest version of each, in the order of names. */
  readonly newest: readonly Template[];
  /** Throws TEMPLATE_NOT_FOUND. */
  require(name: string): Template;
}

/** Those of the platform. */
const own = join(import.meta.dirname, "../../../templates");

/**
 * Reads `<directory>/<face>/<name>/<version>.yaml` of the platform and of the operator's directory, which may add versions and
 * templates. Throws for a file that is no template: the platform does not start with one.
 */
export async function readTemplates(face: "stacks" | "pipelines", operators: string): Promise<Templates> {
  const directories = [join(own, face), ...(operators === "" ? [] : [join(operators, face)])];
  const all = (await Promise.all(directories.map(templatesIn))).flat();
  return templatesOf(all);
}

/** Pure. */
function templatesOf(all: readonly Template[]): Templates {
  const newest = new Map<string, Template>();
  for (const template of all) {
    const known = newest.get(template.name);
    if (known === undefined || isNewer(template.version, known.version)) newest.set(template.name, template);
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
