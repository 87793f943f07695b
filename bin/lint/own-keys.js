import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sourceFiles } from "../source-files.js";
import { checkout } from "../set-up.js";

const openType = String.raw`(?:(?:Readonly|Partial)<)*(?:Record<string,|\{ (?:readonly )?\[\w+: string\]:)`;

/** Sources of the checkout without tests; a rule sees one file at a time and no types, so names stand for types. */
const sources = sourceFiles()
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts") && !/^(?:test|bench)\//.test(path))
  .map((path) => readFileSync(join(checkout, path), "utf8"));

function namesBy(pattern) {
  return new Set(sources.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name)));
}

const alias = (word) => new RegExp(String.raw`^${word}type (\w+)(?:<\w+>)? = ${openType}`, "gm");

/** Names of exported types that stand for a record of any keys; `openTypesOf` has those of one file. */
const openTypes = namesBy(alias("export "));
const openTypesOf = (text) => new Set([...text.matchAll(alias(""))].map(([, name]) => name));

/**
 * Names of properties that some interface, or a proto, declares as a record of any keys. An array of the same name is
 * read by `at`.
 */
const openProperties = namesBy(new RegExp(String.raw`^\s*(?:readonly )?(\w+)\??: ${openType}`, "gm"));

/** `Record<string, ...>`, also inside of Readonly and Partial, a name for it, or a type with an index of strings. */
function isOpenRecord(type, own) {
  if (type?.type === "TSTypeLiteral")
    return type.members.some(
      ({ type: kind, parameters }) =>
        kind === "TSIndexSignature" && parameters[0]?.typeAnnotation?.typeAnnotation?.type === "TSStringKeyword",
    );
  if (type?.type !== "TSTypeReference" || type.typeName.type !== "Identifier") return false;
  if (openTypes.has(type.typeName.name) || own.has(type.typeName.name)) return true;
  const [first] = type.typeArguments?.params ?? [];
  if (["Readonly", "Partial"].includes(type.typeName.name)) return isOpenRecord(first, own);
  return type.typeName.name === "Record" && first?.type === "TSStringKeyword";
}

const isLiteral = ({ type, expressions }) =>
  type === "Literal" || (type === "TemplateLiteral" && expressions.length === 0);

/** The name of the property that an expression reads, without what stands in for an absent one. */
function propertyRead(node) {
  if (node?.type === "ChainExpression" || node?.type === "TSNonNullExpression") return propertyRead(node.expression);
  if (node?.type === "LogicalExpression") return propertyRead(node.left);
  return node?.type === "MemberExpression" && !node.computed ? node.property.name : undefined;
}

/** Is the variable or parameter an open record: by its annotation, or by the property that it is a copy of? */
function isOpenVariable(definition, own) {
  const { name, node } = definition ?? {};
  const annotation = name?.typeAnnotation?.typeAnnotation;
  if (annotation !== undefined) return isOpenRecord(annotation, own);
  const { parent } = name ?? {};
  const property = parent?.type === "AssignmentPattern" ? parent.parent : parent;
  if (property?.type === "Property" && !property.computed) return openProperties.has(property.key.name);
  return node?.type === "VariableDeclarator" && node.id === name && openProperties.has(propertyRead(node.init));
}

function variableOf(scope, name) {
  for (let at = scope; at; at = at.upper) {
    const found = at.set.get(name);
    if (found) return found;
  }
  return undefined;
}

/** Is the place read, and not written? */
function isRead(node) {
  const { parent } = node;
  if (parent.type === "AssignmentExpression" && parent.left === node) return false;
  if (parent.type === "UnaryExpression" && parent.operator === "delete") return false;
  return true;
}

/** Is there an `Object.hasOwn(name, ...)` in the function around it? */
function isGuarded(context, node, name) {
  let around = node;
  while (around.parent && !/Function/.test(around.type)) around = around.parent;
  return context.sourceCode.getText(around).includes(`Object.hasOwn(${name},`);
}

/**
 * An object inherits `constructor`, `toString` and other keys, so a look-up by a client's text can return an inherited
 * function. A table that is read by any text is a Map, is guarded by Object.hasOwn, or has a type with closed keys.
 */
export const ownKeys = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const own = openTypesOf(context.sourceCode.text);
    return {
      MemberExpression(node) {
        const { object, property, computed } = node;
        if (!computed || isLiteral(property) || !isRead(node)) return;
        const isOpen =
          object.type === "Identifier"
            ? isOpenVariable(variableOf(context.sourceCode.getScope(node), object.name)?.defs[0], own)
            : openProperties.has(propertyRead(object));
        const name = context.sourceCode.getText(object);
        if (!isOpen || isGuarded(context, node, name)) return;
        context.report({
          node,
          message: `${name} is read by a key of any text: use a Map, lookUp of common/, or a type with closed keys.`,
        });
      },
      "ExportNamedDeclaration > VariableDeclaration > VariableDeclarator"(node) {
        if (node.init?.type !== "ObjectExpression" || !isOpenRecord(node.id.typeAnnotation?.typeAnnotation, own))
          return;
        context.report({
          node: node.id,
          message: `${node.id.name} is exported as a record of any keys: use a Map or a type with closed keys.`,
        });
      },
    };
  },
};
