/**
 * Writes proto-comments.ts, a table of the comments of our protos by full name: generated code has them as TypeScript
 * comments only. Run by `npm run generate`; a test fails when the file is out of date.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The text of proto-comments.ts for the protos of the workspace at `root`. */
export function renderProtoComments(root: string): string {
  const image = execFileSync("buf", ["build", "--as-file-descriptor-set", "-o", "-"], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  const { file } = fromBinary(FileDescriptorSetSchema, image);
  const lines = file
    .filter(
      (candidate) => candidate.package.startsWith("holdfast.v1") || candidate.package.startsWith("holdfast.admin"),
    )
    .flatMap(commentsOf)
    .map(([name, text]) => `  ${JSON.stringify(name)}: ${JSON.stringify(text)},`);
  return [
    "// Generated from the protos by write-proto-comments.ts.",
    "// biome-ignore format: generated",
    "export const protoComments: Readonly<Record<string, string>> = {",
    ...lines,
    "};",
    "",
  ].join("\n");
}

function commentsOf(file: FileDescriptorProto): [string, string][] {
  return (file.sourceCodeInfo?.location ?? []).flatMap(({ path, leadingComments }) => {
    const name = nameAt(file, path);
    const text = leadingComments
      ?.split("\n")
      .map((line) => line.trim())
      .join(" ")
      .trim();
    return name === undefined || text === undefined || text === ""
      ? []
      : [[`${file.package}.${name}`, text] as [string, string]];
  });
}

/** A path is pairs of field number (4 message, 5 enum, 6 service, 2 field, method or value) and index. */
function nameAt(file: FileDescriptorProto, path: readonly number[]): string | undefined {
  const [kind, index = 0, part, member = 0] = path;
  const outer =
    kind === 4
      ? file.messageType[index]
      : kind === 5
        ? file.enumType[index]
        : kind === 6
          ? file.service[index]
          : undefined;
  if (outer === undefined || path.length % 2 === 1 || path.length > 4) return undefined;
  if (path.length === 2) return outer.name;
  if (part !== 2) return undefined;
  const inner = "field" in outer ? outer.field[member] : "method" in outer ? outer.method[member] : outer.value[member];
  return inner === undefined ? undefined : `${outer.name}.${inner.name}`;
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "../../..");
  writeFileSync(join(import.meta.dirname, "proto-comments.ts"), renderProtoComments(root));
}
