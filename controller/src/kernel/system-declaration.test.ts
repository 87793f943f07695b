import { text } from "@holdfast/common/config.ts";
import { expect, test } from "vitest";
import { createAssembly } from "./assembly.ts";
import { contributionPoint } from "./contribution-point.ts";
import type { Kernel } from "./kernel.ts";
import { definePart } from "./part.ts";
import { declareSystem, openSystems, type SystemDeclaration } from "./system-declaration.ts";

interface Policy {
  readonly owner: string;
  readonly port: number;
}

const policies = contributionPoint<Policy>("policies", { key: ({ owner }) => owner });
const quota = definePart<number>("quota");
const label = definePart<string>("label");

const policyOf = (owner: string, port: number) =>
  declareSystem({ name: owner, contribute: () => [policies.of({ owner, port })] });
const provider = declareSystem({
  name: "provider",
  provides: [quota],
  open: () => ({ name: "provider", provides: [quota.of(3)] }),
});

/** Opens systems that do not use the kernel. */
function opened(declared: readonly SystemDeclaration[], environment = {}) {
  return openSystems({} as Kernel, declared, { assembly: createAssembly(declared), environment });
}

test("a consumer reads the contributions of all systems, also of those behind it in the list", async () => {
  const seen: (readonly Policy[])[] = [];
  const consumer = declareSystem({
    name: "consumer",
    open(_, use) {
      seen.push(use(policies));
      return { name: "consumer" };
    },
  });
  const systems = await opened([policyOf("service", 1), consumer, policyOf("app", 2)]);
  expect(systems.map(({ name }) => name)).toEqual(["consumer"]);
  // A second controller in the process has separate contributions.
  await opened([consumer, policyOf("app", 3)]);
  await opened([consumer]);
  expect(seen).toEqual([
    [
      { owner: "service", port: 1 },
      { owner: "app", port: 2 },
    ],
    [{ owner: "app", port: 3 }],
    [],
  ]);
});

test("two contributions with one key are refused with both systems, before any system opens", async () => {
  let opens = 0;
  const first = declareSystem({
    name: "first",
    open() {
      opens++;
      return { name: "first" };
    },
  });
  const other = declareSystem({ name: "other", contribute: () => [policies.of({ owner: "app", port: 9 })] });
  await expect(opened([first, policyOf("app", 1), other])).rejects.toThrow(
    'systems "app" and "other" both contribute "app" to "policies"',
  );
  expect(opens).toBe(0);
});

test("a contribution after the first read of its point is an error", async () => {
  const assembly = createAssembly([]);
  expect(assembly.useFor("controller")(policies)).toEqual([]);
  expect(() => assembly.add("late", [policies.of({ owner: "late", port: 1 })])).toThrow(
    'system "late" contributes to "policies" after it was read: put the value in "declares"',
  );
});

test("a part that is used before its system provides it is an error with both systems", async () => {
  const user = declareSystem({ name: "user", open: (_, use) => ({ name: `user of ${use(quota)}` }) });
  await expect(opened([user, provider])).rejects.toThrow(
    'system "user" uses "quota" before system "provider" provides it',
  );
  await expect(opened([user])).rejects.toThrow('system "user" uses "quota", which no system provides');
  expect((await opened([provider, user])).map(({ name }) => name)).toEqual(["provider", "user of 3"]);
});

test("a contribution reads a part once all systems are open", async () => {
  const reads: (() => number)[] = [];
  const early = declareSystem({
    name: "early",
    contribute(_, useLater) {
      reads.push(useLater(quota));
      return [];
    },
  });
  await expect(opened([early])).rejects.toThrow('system "early" uses "quota", which no system provides');
  await opened([early, provider]);
  expect(reads.at(-1)?.()).toBe(3);
});

test("a part has one provider, and a provider provides exactly the parts that it declares", async () => {
  const second = declareSystem({ name: "second", provides: [quota], open: () => ({ name: "second" }) });
  await expect(async () => opened([provider, second])).rejects.toThrow(
    'systems "provider" and "second" both provide "quota"',
  );
  await expect(opened([second])).rejects.toThrow('system "second" declares "quota" and does not provide it');
  const silent = declareSystem({ name: "silent", open: () => ({ name: "silent", provides: [label.of("a")] }) });
  await expect(opened([silent])).rejects.toThrow('system "silent" provides "label", which it does not declare');
  const contributed = declareSystem({ name: "contributed", contribute: () => [quota.of(1)] });
  await expect(opened([contributed, provider])).rejects.toThrow(
    'systems "contributed" and "provider" both provide "quota"',
  );
});

test("two systems have different names", () => {
  expect(() => createAssembly([{ name: "note" }, { name: "note" }])).toThrow('two systems have the name "note"');
});

test("a system gets its own settings, parsed", async () => {
  const settings = { prefix: text("HOLDFAST_PREFIX", "Text before a label", "none") };
  const settled = declareSystem({ name: "settled", settings, open: (_kernel, _use, { prefix }) => ({ name: prefix }) });
  const names = async (environment: Record<string, string>) =>
    (await opened([settled], environment)).map(({ name }) => name);
  expect(await names({ HOLDFAST_PREFIX: "Here" })).toEqual(["Here"]);
  expect(await names({})).toEqual(["none"]);
});
