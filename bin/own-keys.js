// Reads of a record by a key of any text. Rules of the lint see no types, so this check is a separate program, which
// prints the number of files that it read. The compiler's API is marked unstable; pnpm-workspace.yaml pins its version.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  isAsExpression,
  isBinaryExpression,
  isDeleteExpression,
  isElementAccessExpression,
  isFunctionLikeDeclaration,
  isLiteralExpression,
  isParenthesizedExpression,
  SyntaxKind,
} from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";
import { checkout } from "./set-up.js";
import { sourceFiles } from "./source-files.js";

/** Tests and benches have no clients. Pages and the SDK's types are printed from the descriptors of the protos. */
const unchecked = /\.test\.ts$|^(?:testing|test|bench|docs|proto)\/|^gateway\/src\/openapi\/|^[^/]*$/;

/**
 * An object inherits `constructor`, `toString` and other keys, so a read by a client's text can return an inherited
 * function. A table that is read by any text is a Map, is read by lookUp or after Object.hasOwn, or has closed keys.
 * Returns the number of files that it read; throws with the reads that are none of these.
 */
function checkOwnKeys() {
  const files = sourceFiles().filter((path) => /\.tsx?$/.test(path) && !unchecked.test(path));
  const [ofConsole, others] = [true, false].map((is) => files.filter((path) => path.startsWith("console/") === is));
  // The console is a separate project.
  const inConsole = openReads(
    join(checkout, "console"),
    ofConsole.map((path) => path.slice("console/".length)),
  );
  const found = [...openReads(checkout, others), ...inConsole.map((read) => `console/${read}`)];
  if (found.length > 0)
    throw new Error(`use a Map, lookUp of common/, or closed keys instead of a read by any text:\n${found.join("\n")}`);
  return files.length;
}

/** `path:line: code` of each unguarded read by any text, in these files of the project of a directory. */
export function openReads(directory, files) {
  const api = new API({ cwd: directory });
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(directory, "tsconfig.json")] }).getProjects();
    return files.flatMap((path) => {
      const file = project.program.getSourceFile(join(directory, path));
      if (file === undefined) throw new Error(`${path} is not part of tsconfig.json`);
      return openReadsOf(file, project.checker).map((node) => {
        const line = file.text.slice(0, node.getStart(file)).split("\n").length;
        return `${path}:${line}: ${node.getText(file)}`;
      });
    });
  } finally {
    api.close();
  }
}

function openReadsOf(file, checker) {
  const reads = [];
  const visit = (node) => {
    const read = readOf(node);
    if (read !== undefined && !isGuarded(node, read.record, file)) reads.push({ node, ...read });
    node.forEachChild(visit);
  };
  visit(file);
  if (reads.length === 0) return [];
  const isText = (type) => ["string", "any"].includes(checker.typeToString(type));
  const isOpen = (type) =>
    checker.getIndexInfosOfType(checker.getNonNullableType(type)).some(({ keyType }) => isText(keyType));
  const records = checker.getTypeAtLocation(reads.map(({ record }) => record));
  const keys = checker.getTypeAtLocation(reads.map(({ key }) => key));
  return reads
    .filter(({ isCast }, index) => isText(keys[index]) && (isCast || isOpen(records[index])))
    .map(({ node }) => node);
}

/** Record and key of `record[key]` and `key in record`. A cast closes no keys: the key is the one before the cast. */
function readOf(node) {
  if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword)
    return { record: node.right, key: node.left, isCast: true };
  if (!isElementAccessExpression(node) || isLiteralExpression(node.argumentExpression) || isWritten(node))
    return undefined;
  const { expression: record, argumentExpression: key } = node;
  return { record, key: withoutCasts(key), isCast: isAsExpression(key) };
}

function isWritten(node) {
  const { parent } = node;
  if (isDeleteExpression(parent)) return true;
  return isBinaryExpression(parent) && parent.left === node && parent.operatorToken.kind === SyntaxKind.EqualsToken;
}

function withoutCasts(node) {
  return isParenthesizedExpression(node) || isAsExpression(node) ? withoutCasts(node.expression) : node;
}

/** Is there an `Object.hasOwn(record, ...)` in the function around it? */
function isGuarded(node, record, file) {
  let around = node;
  while (around.parent && !isFunctionLikeDeclaration(around)) around = around.parent;
  return around.getText(file).includes(`Object.hasOwn(${withoutCasts(record).getText(file)},`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    console.log(checkOwnKeys());
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
