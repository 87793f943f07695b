import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createRegistry, type DescFile, type DescMethod } from "@bufbuild/protobuf";
import { restRule } from "@holdfast/gateway/method.ts";
import { responseExample } from "@holdfast/gateway/openapi/response-examples.ts";

const generated = join(import.meta.dirname, "../../../proto/gen/holdfast");

/** States of resources that a change is still in progress for, by message. */
const unfinished: Readonly<Record<string, string>> = { Operation: "running", ManagedService: "Running" };

/** Responses of the API by the examples of its protos, so that every command finds each field that it reads. */
export async function createExampleResponses(): Promise<(method: string, path: string) => unknown> {
  const methods = await methodsIn("v1");
  const admin = await methodsIn("admin/v1");
  const routes = methods.flatMap((method) => {
    const rest = restRule(method);
    return rest === undefined ? [] : [{ verb: rest.verb, pattern: patternOf(rest.path), method }];
  });
  const operation = completed(byName(methods, "GetOperation"), null);

  return (verb, path) => {
    const [, service, name] = /^\/holdfast\.admin\.v1\.(\w+)\/(\w+)$/.exec(path) ?? [];
    if (service !== undefined) {
      const method = admin.find((each) => each.parent.name === service && each.name === name);
      return method && camelCased(responseExample(method.output));
    }
    const route = routes.find((each) => each.verb === verb && each.pattern.test(path));
    return route && completed(route.method, operation);
  };
}

/** The example of a method, whose change is carried out by an operation in progress. */
function completed({ output }: DescMethod, operation: unknown): unknown {
  const example = filled(responseExample(output), output.name, operation);
  if (typeof example !== "object" || example === null) return example;
  // Two entries, so that a limit of one changes the output.
  return Object.fromEntries(
    Object.entries(example).map(([key, member]) => [key, isList(member) ? [...member, ...member] : member]),
  );
}

const isList = (value: unknown): value is readonly object[] => Array.isArray(value) && typeof value[0] === "object";

function filled(value: unknown, name: string, operation: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => filled(each, name, operation));
  if (typeof value !== "object" || value === null) return value;
  const state = unfinished[name];
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      if (key === "operation" && member === null) return [key, operation];
      if (key === "operation_id" && member === null) return [key, "019a2f5e-7c1b-7f00-8d21-6b5a4c3e2d10"];
      if (key.endsWith("_uri") && (member === null || typeof member === "string"))
        return [key, "postgres://app_user@orders-2.local.holdfast.test:6432/defaultdb"];
      if (key === "next_cursor") return [key, null];
      if (key === "status" && state !== undefined) return [key, state];
      const inner = key === "services" || key === "managed_services" ? "ManagedService" : "";
      return [key, filled(member, key === "operation" ? "Operation" : inner, operation)];
    }),
  );
}

async function methodsIn(folder: string): Promise<DescMethod[]> {
  const directory = join(generated, folder);
  const modules = await Promise.all(
    (await readdir(directory)).map((name) => import(join(directory, name)) as Promise<Record<string, unknown>>),
  );
  const files = modules.flatMap((module) =>
    Object.entries(module).flatMap(([name, value]) => (name.startsWith("file_") ? [value as DescFile] : [])),
  );
  return [...createRegistry(...files)].flatMap((each) => (each.kind === "service" ? each.methods : []));
}

function byName(methods: readonly DescMethod[], name: string): DescMethod {
  const found = methods.find((method) => method.name === name);
  if (found === undefined) throw new Error(`there is no method ${name}`);
  return found;
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{[^}]*\}/g, "[^/]+")}$`);
}

/** Names of JSON in Connect, without the cursor of a next page. */
function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const name = key.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
      return [name, name === "nextCursor" ? "" : camelCased(member)];
    }),
  );
}
