const functions = /\bpg_sleep\w*\s*\(|\b(?:select|do)\b.*\bsleep\s*\(/is;

/**
 * Statements that wait for a time. A test that needs a statement which runs on takes a lock that another session has,
 * so that the statement ends by a condition.
 */
export const noSqlSleep = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const report = (node, text) => {
      if (functions.test(text))
        context.report({ node, message: "A statement waits for a time: let it wait for a lock of another session." });
    };
    return {
      Literal: (node) => typeof node.value === "string" && report(node, node.value),
      TemplateElement: (node) => report(node, node.value.raw),
    };
  },
};
