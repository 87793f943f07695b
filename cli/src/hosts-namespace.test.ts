import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { withHostNames } from "./hosts-namespace.ts";
import { createTemporaryFiles } from "./private-files.ts";

const target = { host: "shop-abc.local.holdfast.test", address: "127.77.0.1" };

test("a program resolves the name, and others do not", () => {
  const files = createTemporaryFiles();
  try {
    const resolving = withHostNames(
      { command: "getent", args: ["hosts"] },
      [{ host: "other.test", address: "127.77.0.2" }, target],
      files,
    );
    // A kernel may refuse namespaces to users; root has them.
    if (resolving === undefined) return expect(process.getuid?.()).not.toBe(0);
    const output = execFileSync(resolving.command, [...resolving.args, target.host], { encoding: "utf8" });
    expect(output.split(/\s+/).slice(0, 2)).toEqual([target.address, target.host]);
    expect(() => execFileSync("getent", ["hosts", target.host])).toThrow();
  } finally {
    files.remove();
  }
});
