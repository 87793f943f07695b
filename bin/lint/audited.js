/** Names of types that only a file with handlers of calls imports. */
const callTypes = new Set(["Call", "Handlers"]);

/** `mutate` itself, and tests, whose units of work belong to no caller. */
const isExempt = (path) => /(?:\/access\/mutate\.ts|\.test\.ts)$|\/testing\/src\//.test(path);

/**
 * A call changes objects by `mutate` of access/, which writes the audit entry in the same transaction. A handler that
 * commits a unit of work itself can forget it, and one that retries around `mutate` retries a dozen times a dozen. A
 * change that takes no unit of work only audits an effect elsewhere, which would have no entry if that commit fails:
 * `auditedActs.act` stores a pending entry before the effect. An exception is disabled at its line, with the reason.
 */
export const audited = {
  meta: { type: "problem", schema: [] },
  create(context) {
    let hasCalls = false;
    return {
      ImportDeclaration({ source, specifiers }) {
        if (source.value !== "@holdfast/common/call.ts" || isExempt(context.filename)) return;
        hasCalls ||= specifiers.some(({ imported }) => callTypes.has(imported?.name));
      },
      CallExpression(node) {
        const { name, object, property } = node.callee;
        const change = name === "mutate" ? node.arguments.at(-1) : undefined;
        if (hasCalls && change?.params?.length === 0)
          context.report({ node, message: "A call with an effect outside of the store runs it in auditedActs.act." });
        const isOfUnit = object?.name === "unit" && ["audit", "commit"].includes(property?.name);
        if (!hasCalls || !(isOfUnit || name === "retryConflict")) return;
        const own = context.sourceCode.getText(node.callee);
        context.report({ node, message: `A call changes objects by mutate of access/, not by ${own}.` });
      },
    };
  },
};
