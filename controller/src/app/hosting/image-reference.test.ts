import { expect, test } from "vitest";
import { parseImageReference } from "./image-reference.ts";

const organizationId = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90";
const other = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d91";
const registry = "127.0.0.1:8452";
const digest = `sha256:${"a".repeat(64)}`;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["shop",                                     "shop",      "latest"],
  ["shop:1",                                   "shop",      "1"],
  ["team/shop:v1.2_x-3",                       "team/shop", "v1.2_x-3"],
  [`shop@${digest}`,                           "shop",      digest],
  [`shop:1@${digest}`,                         "shop",      digest],
  [`${organizationId}/shop:1`,                 "shop",      "1"],
  [`${registry}/${organizationId}/shop:1`,     "shop",      "1"],
  [`${registry}/shop:1`,                       "shop",      "1"],
])("%s is the organization's image %s", (text, name, reference) => {
  expect(parseImageReference(text, { organizationId, registry })).toEqual({
    repository: `${organizationId}/${name}`,
    reference,
  });
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["",                              "must be the name of an image, such as shop:1"],
  ["Shop:1",                        "must be the name of an image, such as shop:1"],
  ["shop:",                         "must be the name of an image, such as shop:1"],
  ["-shop",                         "must be the name of an image, such as shop:1"],
  ["a//shop",                       "must be the name of an image, such as shop:1"],
  ["shop?x=1",                      "must be the name of an image, such as shop:1"],
  ["shop/../other",                 "must be the name of an image, such as shop:1"],
  ["shop@sha256:abc",               "must be the name of an image, such as shop:1"],
  ["docker.io/library/nginx:1",     `must be an image of the platform's registry, ${registry}: push it there first`],
  ["localhost/shop:1",              `must be an image of the platform's registry, ${registry}: push it there first`],
  ["127.0.0.1:1/shop:1",            `must be an image of the platform's registry, ${registry}: push it there first`],
  [`${other}/shop:1`,               "must be an image of your organization"],
  [`${registry}/${other}/shop:1`,   "must be an image of your organization"],
  ["a".repeat(250),                 "is too long"],
])("%s is refused", (text, fault) => {
  expect(parseImageReference(text, { organizationId, registry })).toBe(fault);
});

test("a long text that matches no name is refused within a second", () => {
  const started = performance.now();
  expect(parseImageReference(`${"a-".repeat(250)}!`, { organizationId, registry })).toContain("must be the name");
  expect(performance.now() - started).toBeLessThan(1_000);
});
