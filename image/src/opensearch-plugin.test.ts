import { pluginDescriptor } from "@holdfast/testing/engines/opensearch-plugins.ts";
import { expect, test } from "vitest";
import { checkEntries, checkTogether, parseDescriptor } from "./opensearch-plugin.ts";
import type { ZipEntry } from "./zip-file.ts";

const version = "2.19.4";
const entry = (different: Partial<ZipEntry> = {}): ZipEntry => ({
  name: "plugin-descriptor.properties",
  sizeBytes: 1,
  method: 8,
  isEncrypted: false,
  isSpecial: false,
  ...different,
});

test("a zip with a descriptor, jars and directories is a plugin", () => {
  const others = ["words.jar", "config/", "config/words.txt"].map((name) => entry({ name }));
  expect(checkEntries([...others, entry()])).toEqual(entry());
});

test.each([
  [[], "it has no plugin-descriptor.properties: use the zip that opensearch-plugin installs, not one that contains it"],
  [[entry({ name: "words/plugin-descriptor.properties" })], "it has no plugin-descriptor.properties"],
  [[entry(), entry({ name: "../x.jar" })], 'the path "../x.jar" in it does not stay in the plugin\'s directory'],
  [[entry(), entry({ name: "a/../../x" })], "does not stay"],
  [[entry(), entry({ name: "/etc/passwd" })], "does not stay"],
  [[entry(), entry({ name: "a//b" })], "does not stay"],
  [[entry(), entry({ name: "a\\b" })], "does not stay"],
  [[entry(), entry({ name: "a\nb" })], "does not stay"],
  [[entry(), entry({ name: "x".repeat(256) })], "does not stay"],
  [[entry(), entry({ name: "link", isSpecial: true })], '"link" in it is neither a file nor a directory'],
  [[entry(), entry({ name: "secret", isEncrypted: true })], '"secret" in it is encrypted'],
  [[entry(), entry({ name: "lzma", method: 14 })], '"lzma" in it is packed by a method other than deflate'],
  [[entry(), entry()], '"plugin-descriptor.properties" is in it twice'],
  [[entry(), entry({ name: "huge", sizeBytes: 2 ** 31 })], "the limit is 2147483648"],
  [Array.from({ length: 10_001 }, (_, at) => entry({ name: `f${at}` })), "it has more than 10000 files"],
])("a zip that images do not unpack is refused: %#", (entries, reason) => {
  expect(() => checkEntries(entries)).toThrow(reason);
});

test("a descriptor is read as the engine reads it", () => {
  const extended = { "extended.plugins": "words-base, words-more;optional=true", "custom.foldername": "" };
  expect(parseDescriptor(`# comment\n! another\n\n${pluginDescriptor(extended)}`, version)).toEqual({
    name: "words",
    version: "1.0",
    folder: "words",
    extends: ["words-base"],
  });
  const text = pluginDescriptor({ "custom.foldername": "other" }).replace("version=1.0", "version : 1\\:\\\n  2");
  expect(parseDescriptor(text, version)).toMatchObject({ folder: "other", version: "1:2", extends: [] });
});

test.each([
  ["2.19.4", true],
  ["=2.19.4", true],
  ["~2.19.0", true],
  ["~2.19.4", true],
  ["^2.0.0", true],
  ["~2.19.5", false],
  ["~2.18.0", false],
  ["^2.20.0", false],
  ["^3.0.0", false],
  ["^1.3.0", false],
  ["2.19.3", false],
  ["[2.18.0,2.20.0)", false],
  [">=2.0.0", false],
])("the range %s contains the engine's version: %s", (range, contains) => {
  const text = pluginDescriptor({ "opensearch.version": "", dependencies: `{ opensearch: "${range}" }` });
  if (contains) expect(parseDescriptor(text, version).name).toBe("words");
  else
    expect(() => parseDescriptor(text, version)).toThrow(
      `it is for OpenSearch ${range}: use its zip for OpenSearch 2.19.4`,
    );
});

test.each([
  [{ "opensearch.version": "2.19.3" }, "it is for OpenSearch 2.19.3: use its zip for OpenSearch 2.19.4"],
  [{ "opensearch.version": "" }, "its descriptor needs either opensearch.version or dependencies"],
  [{ dependencies: '{"opensearch":"2.19.4"}' }, "either opensearch.version or dependencies"],
  [{ "opensearch.version": "", dependencies: "{}" }, 'its dependencies are not {opensearch: "RANGE"}'],
  [{ name: "../words" }, 'its name "../words" is no name of a directory'],
  [{ name: "" }, 'its name "" is no name of a directory'],
  [{ "custom.foldername": ".." }, 'its name ".." is no name of a directory'],
  [{ "has.native.controller": "true" }, "it has a native controller, which images do not run"],
  [{ constructor: "x" }, "its descriptor has constructor, which OpenSearch 2.19.4 does not know"],
])("a descriptor of which the engine or the image would refuse the plugin is refused: %j", (different, reason) => {
  expect(() => parseDescriptor(pluginDescriptor(different), version)).toThrow(reason);
});

test("a descriptor without a required property is refused", () => {
  expect(() => parseDescriptor("name=words\n", version)).toThrow("its descriptor has no description");
});

test("plugins have separate names, and the plugins that they extend", () => {
  const host = { version, has: new Set(["lang-painless", "opensearch-security"]) };
  const plugin = (name: string, ...needed: string[]) => ({
    file: `${name}.zip`,
    descriptor: { name, version, folder: name, extends: needed },
  });
  checkTogether([plugin("opensearch-knn", "lang-painless"), plugin("neural", "opensearch-knn")], host);
  expect(() => checkTogether([plugin("neural", "opensearch-knn")], host)).toThrow(
    "neural.zip: it needs the plugin opensearch-knn: add its zip to the same directory",
  );
  expect(() => checkTogether([plugin("opensearch-security")], host)).toThrow(
    "opensearch-security.zip: the image already has opensearch-security: remove the file",
  );
  expect(() => checkTogether([plugin("neural"), { ...plugin("neural"), file: "copy.zip" }], host)).toThrow(
    "copy.zip: neural.zip has neural, too: remove one of the files",
  );
});
