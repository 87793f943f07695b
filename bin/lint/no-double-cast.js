/**
 * `as unknown as T` turns any value into any type, so the compiler checks neither. A narrower parameter type, a type
 * guard or, in tests, `partial<T>(fields)` states what is used. An exception gives its reason.
 */
export const noDoubleCast = {
  meta: { type: "problem", schema: [] },
  create(context) {
    return {
      TSAsExpression(node) {
        const { type, typeAnnotation } = node.expression;
        if (type !== "TSAsExpression" || typeAnnotation.type !== "TSUnknownKeyword") return;
        context.report({
          node,
          message:
            "as unknown as hides every mismatch: narrow the type that is required, or use partial<T>() in tests.",
        });
      },
    };
  },
};
