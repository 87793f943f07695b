import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "@holdfast/proto/google/api/annotations_pb.ts";
import { type MethodRules, rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";

/** Services for organizations, over REST and gRPC. */
export const organizationServices: readonly DescService[] = await servicesOf("v1");

/** Services for platform operators, over gRPC. */
export const platformServices: readonly DescService[] = await servicesOf("admin/v1");

/** All services of a folder of generated code. */
async function servicesOf(folder: string): Promise<DescService[]> {
  const directory = join(import.meta.dirname, "../../../proto/gen/holdfast", folder);
  const files = readdirSync(directory).filter((file) => file.endsWith("_pb.ts"));
  const modules = await Promise.all(files.sort().map(async (file): Promise<object> => import(join(directory, file))));
  return modules.flatMap((module) => Object.values(module).filter(isService));
}

function isService(value: unknown): value is DescService {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "service";
}

/** One method with its REST route, as its descriptor declares. */
export interface RestMethod {
  readonly method: DescMethod;
  readonly rules: MethodRules;
  readonly verb: string;
  /** "/managed-services/{id}". */
  readonly path: string;
}

export const restMethods: readonly RestMethod[] = organizationServices.flatMap(({ methods }) =>
  methods.flatMap((method) => {
    if (!hasOption(method, http)) return [];
    const { pattern } = getOption(method, http);
    if (pattern.case === undefined || pattern.case === "custom") throw new Error(`${method} has no usual verb`);
    return [{ method, rules: getOption(method, rules), verb: pattern.case.toUpperCase(), path: pattern.value }];
  }),
);

/** The method that serves a verb on a path, if any: a literal segment matches before a variable. */
export function findRestMethod(verb: string, path: string): RestMethod | undefined {
  const segments = (path.split("?")[0] ?? "").split("/");
  const variables = (candidate: RestMethod) => candidate.path.split("{").length;
  const found = restMethods.filter((candidate) => {
    if (candidate.verb !== verb) return false;
    const pathSegments = candidate.path.split("/");
    return (
      pathSegments.length === segments.length &&
      pathSegments.every((part, i) => part.startsWith("{") || part === segments[i])
    );
  });
  return found.toSorted((a, b) => variables(a) - variables(b))[0];
}
