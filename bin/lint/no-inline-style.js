const markup = new Set(["innerHTML", "outerHTML"]);
const message =
  "The policy of the pages refuses inline styles and markup out of texts: use a class, a property of `style`, or adoptedStyleSheets.";

/**
 * Styles as elements or attributes, and markup that is set as a text. The policy of the pages refuses both in the
 * browser only, and a style of a state that no test opens would be missed.
 */
export const noInlineStyle = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const report = (node) => context.report({ node, message });
    return {
      JSXOpeningElement(node) {
        if (node.name.name === "style") report(node);
      },
      JSXAttribute(node) {
        if (node.name.name === "dangerouslySetInnerHTML") report(node);
      },
      AssignmentExpression({ left }) {
        if (left.type === "MemberExpression" && markup.has(left.property.name)) report(left);
      },
      CallExpression({ callee, arguments: [first] }) {
        if (callee.type !== "MemberExpression") return;
        const { name } = callee.property;
        const isStyle = first?.type === "Literal" && first.value === "style";
        if (name === "insertAdjacentHTML" || ((name === "setAttribute" || name === "createElement") && isStyle))
          report(callee);
      },
    };
  },
};
