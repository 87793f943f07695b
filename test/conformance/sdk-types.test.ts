import { describe, expect, test } from "vitest";
import type * as sdk from "@holdfast/sdk/index.ts";
import { createClient } from "@holdfast/sdk/index.ts";
import { findRestMethod, restMethods } from "@holdfast/testing/api/api-methods.ts";
import { nameOf } from "@holdfast/testing/contract/authorization-cases.ts";
import { contractFileOf, mergeTables } from "@holdfast/testing/contract/contracts.ts";

/** Each method of the API as the SDK calls it; contracts do not compile while a response type differs. */
const calls = mergeTables(({ sdk: services = [] }) => services.map((each) => each.calls));

describe("the SDK's methods", () => {
  test("are those of the API", () => {
    const missing = restMethods.filter(({ method }) => calls[nameOf(method)] === undefined);
    expect(missing.map(({ method }) => `${nameOf(method)}: ${contractFileOf(method)}`)).toEqual([]);
    expect(Object.keys(calls)).toHaveLength(restMethods.length);
  });

  test.each(restMethods.map((rest) => [nameOf(rest.method), rest] as const))("%s", async (name, { method, path }) => {
    const requests: { verb: string; url: URL; body: object }[] = [];
    const client = createClient({
      baseUrl: "https://holdfast.test",
      fetch: async (input, init) => {
        const body = typeof init?.body === "string" ? (JSON.parse(init.body) as object) : {};
        requests.push({ verb: init?.method ?? "", url: input as URL, body });
        return Response.json({});
      },
    });
    const response = calls[name]?.(client);
    await (typeof response === "object" && response !== null && "pages" in response
      ? (response as sdk.List<unknown>).pages().next()
      : response);
    expect(requests).toHaveLength(1);
    const [{ verb, url, body } = { verb: "", url: new URL("x:"), body: {} }] = requests;
    expect(findRestMethod(verb, url.pathname)?.method.name).toBe(method.name);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field ?? "");
    const sent = [...inPath, ...url.searchParams.keys(), ...Object.keys(body)];
    const fields = method.input.fields.map((field) => field.name).filter((field) => !isElsewhere(field));
    expect(sent.toSorted()).toEqual(fields.toSorted());
  });
});

/** True for fields without a member in the SDK: update_mask is for gRPC, and `follow` lists are separate methods. */
function isElsewhere(field: string): boolean {
  return field === "update_mask" || field === "follow";
}
