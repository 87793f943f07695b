// Rules of the lint that are ours.

/** `Record<string, ...>`, also inside of Readonly and Partial, or a type with an index of strings. */
function isOpenRecord(type) {
  if (type?.type === "TSTypeLiteral")
    return type.members.some(
      ({ type: kind, parameters }) =>
        kind === "TSIndexSignature" && parameters[0]?.typeAnnotation?.typeAnnotation?.type === "TSStringKeyword",
    );
  if (type?.type !== "TSTypeReference" || type.typeName.type !== "Identifier") return false;
  const [first] = type.typeArguments?.params ?? [];
  if (["Readonly", "Partial"].includes(type.typeName.name)) return isOpenRecord(first);
  return type.typeName.name === "Record" && first?.type === "TSStringKeyword";
}

const isLiteral = ({ type, expressions }) =>
  type === "Literal" || (type === "TemplateLiteral" && expressions.length === 0);

/** The annotation of a variable or parameter. */
function annotationOf(definition) {
  const { name } = definition ?? {};
  return name?.typeAnnotation?.typeAnnotation;
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
 * An object inherits `constructor`, `toString` and other keys that no code gave it, so a look-up by a word of a client finds a
 * function where nothing is. What is looked up by any text is a Map, is guarded by Object.hasOwn, or has a type with closed keys.
 */
const ownKeys = {
  meta: { type: "problem", schema: [] },
  create(context) {
    return {
      MemberExpression(node) {
        const { object, property, computed } = node;
        if (!computed || object.type !== "Identifier" || isLiteral(property) || !isRead(node)) return;
        const variable = variableOf(context.sourceCode.getScope(node), object.name);
        if (!isOpenRecord(annotationOf(variable?.defs[0]))) return;
        if (isGuarded(context, node, object.name)) return;
        context.report({
          node,
          message: `${object.name} is read by a key of any text: use a Map, lookUp of common/, or a type with closed keys.`,
        });
      },
      "ExportNamedDeclaration > VariableDeclaration > VariableDeclarator"(node) {
        if (node.init?.type !== "ObjectExpression" || !isOpenRecord(node.id.typeAnnotation?.typeAnnotation)) return;
        context.report({
          node: node.id,
          message: `${node.id.name} is exported as a record of any keys: use a Map or a type with closed keys.`,
        });
      },
    };
  },
};

export default { meta: { name: "holdfast" }, rules: { "own-keys": ownKeys } };
