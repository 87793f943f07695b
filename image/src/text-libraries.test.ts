import { expect, test } from "vitest";
import { textLibrariesOf } from "./text-libraries.ts";

const packageOf = (name: string, version: string) => ({
  name,
  version,
  architecture: "amd64",
  sha256: "",
  sizeBytes: 0,
  control: "",
});

test("of two versions of a collation library the newer one counts", () => {
  const packages = [
    packageOf("libc6", "2.43-7"),
    packageOf("libicu76", "76.1-4+b1"),
    packageOf("libicu78", "78.3-2"),
    packageOf("libicu8", "8.1"),
  ];
  expect(textLibrariesOf({ packages })).toEqual({ libc: "2.43", ICU: "78.3" });
});
