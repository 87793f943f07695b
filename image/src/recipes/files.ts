import type { GoProgram } from "../artifact.ts";
import { basePackages, type Recipe } from "../recipe.ts";
import { versitygwEdits } from "./versitygw-edits.ts";

/** S3 server on a file system. Tests also use it as an object store of other makers. */
export const versitygw = {
  module: "github.com/versity/versitygw",
  version: "v1.8.0",
  sum: "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
  package: "github.com/versity/versitygw/cmd/versitygw",
  edits: versitygwEdits,
} as const satisfies GoProgram;

/** Machines of files services: the S3 server, and HAProxy in front of it. */
export const files = {
  suite: "trixie",
  packages: [...basePackages, "haproxy"],
  software: [{ program: "files", version: "1", path: "/usr", executable: "versitygw", package: versitygw.module }],
  artifacts: [{ kind: "go", ...versitygw, path: "/usr/local/bin/versitygw" }],
} as const satisfies Recipe;
