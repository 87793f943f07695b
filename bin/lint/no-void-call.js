/** Is there no promise that `void` could hide: an awaited value, an assignment, or a literal? */
function hidesNothing({ type, ...node }) {
  if (type === "LogicalExpression") return hidesNothing(node.right);
  if (type === "ConditionalExpression") return hidesNothing(node.consequent) && hidesNothing(node.alternate);
  return ["AwaitExpression", "AssignmentExpression", "Literal"].includes(type);
}

/**
 * `void` hides a promise from no-floating-promises and no-misused-promises. Without `void` these rules see each
 * promise: it is awaited, has a handler for its failure, or is started by inBackground of common/.
 */
export const noVoidCall = {
  meta: { type: "problem", schema: [] },
  create(context) {
    return {
      UnaryExpression(node) {
        if (node.operator !== "void" || hidesNothing(node.argument)) return;
        context.report({
          node,
          message:
            "void hides a promise that nothing awaits: use a block, a handler for its failure, or inBackground of common/.",
        });
      },
    };
  },
};
