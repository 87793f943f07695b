const timers = new Set(["timers/promises", "node:timers/promises"]);

/** True if the function only sets a timer that ends the promise: `(resolve) => setTimeout(resolve, 50)`. */
function setsTimer(node) {
  const body = node?.body?.type === "BlockStatement" ? node.body.body.at(0)?.expression : node?.body;
  return body?.type === "CallExpression" && body.callee.name === "setTimeout";
}

/**
 * Tests that wait for a time. Under load the time is too short, and the test fails; a fault that needs longer is not
 * found. A test waits for a condition, or a comment beside the wait states why only time shows it.
 */
export const noClockWait = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const sleeps = new Set();
    const explained = new Set();
    let isFake = false;
    const report = (node) => {
      const statement = context.sourceCode
        .getAncestors(node)
        .findLast(({ type }) => /Statement|Declaration/.test(type));
      const lines = [node, statement ?? node].flatMap(({ loc }) => [loc.start.line - 1, loc.start.line]);
      if (isFake || lines.some((line) => explained.has(line))) return;
      const message = "The test waits for a time: wait for a condition, or give the reason in a comment above.";
      context.report({ node, message });
    };
    return {
      Program() {
        for (const { loc } of context.sourceCode.getAllComments()) explained.add(loc.end.line);
        isFake = context.sourceCode.text.includes("vi.useFakeTimers");
      },
      ImportDeclaration({ source, specifiers }) {
        if (!timers.has(source.value)) return;
        for (const { imported, local } of specifiers) if (imported?.name === "setTimeout") sleeps.add(local.name);
      },
      CallExpression: (node) => sleeps.has(node.callee.name) && report(node),
      NewExpression: (node) => node.callee.name === "Promise" && setsTimer(node.arguments[0]) && report(node),
    };
  },
};
