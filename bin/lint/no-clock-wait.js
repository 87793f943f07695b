const promises = new Set(["timers/promises", "node:timers/promises"]);
/** Functions of `timers/promises` that wait, and the property of its `scheduler` that does. */
const timed = new Set(["setTimeout", "setInterval"]);
/** Functions of other modules that wait for a time. */
const named = new Set(["sleep", "delay", "pause"]);
const functions = new Set(["ArrowFunctionExpression", "FunctionExpression", "FunctionDeclaration"]);
/**
 * The comment that permits a wait. An interval or a timeout of the code under test is no reason: a test counts its
 * rounds, or passes a clock or a timer to it.
 */
const mark = /^Time: the (?:delay|end|length|moment|rate) of \S.*\.$/;

/** Name of an identifier or of a member's property; undefined for other nodes. */
const nameOf = (node) => (node?.type === "MemberExpression" ? node.property.name : node?.name);
const isMember = (node, object, property) =>
  node?.type === "MemberExpression" && node.object.name === object && node.property.name === property;
const withoutAwait = (node) => (node?.type === "AwaitExpression" ? node.argument : node);

/** The node and those below it. */
function* below(node) {
  yield node;
  for (const [key, value] of Object.entries(node)) {
    if (key === "parent") continue;
    for (const each of Array.isArray(value) ? value : [value]) if (typeof each?.type === "string") yield* below(each);
  }
}

/** True for a call of `setTimeout` whose callback uses the name, such as that of a promise's `resolve`. */
const setsTimerFor = (node, isResolve) =>
  node.type === "CallExpression" &&
  nameOf(node.callee) === "setTimeout" &&
  node.arguments[0] !== undefined &&
  [...below(node.arguments[0])].some(isResolve);

/** Last lines of the comments that permit a wait on the next line. A comment beside code is not above it. */
function markedLines({ lines, getAllComments }) {
  const marked = new Set();
  let text = "";
  let lastLine = -1;
  for (const { type, value, loc } of getAllComments()) {
    if (!/^\s*\/[/*]/.test(lines[loc.start.line - 1])) continue;
    const part = value.replaceAll(/\s*\n\s*\*?\s*|^\*?\s+|\s+$/g, " ").trim();
    const continues = type === "Line" && loc.start.line === lastLine + 1;
    text = continues ? `${text} ${part}` : part;
    lastLine = loc.end.line;
    if (mark.test(text)) marked.add(lastLine);
  }
  return marked;
}

/**
 * Tests that wait for a time. Under load the time is too short, and the test fails; a fault that needs longer is not
 * found. A test waits for a condition, or a comment such as `// Time: the moment of the kill.` directly above the wait
 * states why only time shows it: the moment, length or rate of what the test does, the delay of a peer, or the end of a
 * lease that another program counts.
 */
export const noClockWait = {
  meta: { type: "problem", schema: [] },
  create(context) {
    /** Names in the file of functions that wait, of modules with such functions, and of schedulers. */
    const sleeps = new Set();
    const modules = new Set();
    const schedulers = new Set();
    /** Names of functions that resolve a promise, and of objects with such a function. */
    const resolves = new Set();
    const deferred = new Set();
    let marked;

    const report = (node) => {
      const ancestors = context.sourceCode.getAncestors(node);
      const inFunction = ancestors.slice(ancestors.findLastIndex(({ type }) => functions.has(type)) + 1);
      const statement = inFunction.findLast(({ type }) => /(?<!Block)Statement$|Declaration$/.test(type));
      if ([node, statement ?? node].some(({ loc }) => marked.has(loc.start.line - 1))) return;
      const message =
        'The test waits for a time: wait for a condition, or give the reason above: "// Time: the moment of the kill."';
      context.report({ node, message });
    };

    const isScheduler = (node) =>
      schedulers.has(node?.name) || (node?.type === "MemberExpression" && isModulePart(node, "scheduler"));
    const isModulePart = (node, property) => modules.has(node.object?.name) && node.property.name === property;
    const waits = (callee) =>
      sleeps.has(callee.name) ||
      (callee.type === "MemberExpression" &&
        ([...timed].some((name) => isModulePart(callee, name)) ||
          (isScheduler(callee.object) && callee.property.name === "wait") ||
          isMember(callee, "Atomics", "wait") ||
          isMember(callee, "Atomics", "waitAsync") ||
          callee.property.name === "waitForTimeout"));

    /** A name for a part of `timers/promises`. */
    const add = (part, local) => {
      if (timed.has(part)) sleeps.add(local);
      else if (part === "scheduler") schedulers.add(local);
    };
    const propertiesOf = (pattern) =>
      pattern.type === "ObjectPattern" ? pattern.properties.map(({ key, value }) => [key?.name, value?.name]) : [];

    return {
      Program() {
        marked = markedLines({
          lines: context.sourceCode.lines,
          getAllComments: () => context.sourceCode.getAllComments(),
        });
      },
      ImportDeclaration({ source, specifiers }) {
        for (const { imported, local } of specifiers) {
          if (imported !== undefined && named.has(imported.name)) sleeps.add(local.name);
          if (!promises.has(source.value)) continue;
          if (imported === undefined) modules.add(local.name);
          else add(imported.name, local.name);
        }
      },
      // Another module would import the function under a name that it does not know.
      ExportNamedDeclaration(node) {
        if (!promises.has(node.source?.value)) return;
        if (node.specifiers.some(({ local }) => timed.has(local.name) || local.name === "scheduler")) report(node);
      },
      ExportAllDeclaration: (node) => promises.has(node.source.value) && report(node),
      VariableDeclarator({ id, init }) {
        const value = withoutAwait(init);
        if (value?.type === "ImportExpression" && promises.has(value.source.value)) {
          if (id.type === "Identifier") modules.add(id.name);
          for (const [part, local] of propertiesOf(id)) add(part, local);
        } else if (value?.type === "CallExpression" && nameOf(value.callee) === "promisify") {
          if (nameOf(value.arguments[0]) === "setTimeout") sleeps.add(id.name);
        } else if (value?.type === "CallExpression" && isMember(value.callee, "Promise", "withResolvers")) {
          if (id.type === "Identifier") deferred.add(id.name);
          for (const [part, local] of propertiesOf(id)) if (part === "resolve") resolves.add(local);
        } else if (value?.type === "Identifier" || value?.type === "MemberExpression") {
          if (waits(value)) sleeps.add(id.name);
          for (const [part, local] of propertiesOf(id)) {
            if (modules.has(value.name)) add(part, local);
            if (isScheduler(value) && part === "wait") sleeps.add(local);
          }
        }
      },
      CallExpression(node) {
        const { callee } = node;
        const isResolve = (each) =>
          resolves.has(each.name) ||
          (each.type === "MemberExpression" && deferred.has(each.object.name) && each.property.name === "resolve");
        const isPromisified =
          callee.type === "CallExpression" &&
          nameOf(callee.callee) === "promisify" &&
          nameOf(callee.arguments[0]) === "setTimeout";
        if (waits(callee) || isPromisified || setsTimerFor(node, isResolve)) report(node);
      },
      NewExpression(node) {
        const [executor] = node.arguments;
        if (node.callee.name !== "Promise" || !functions.has(executor?.type)) return;
        const resolve = executor.params[0]?.name;
        if ([...below(executor.body)].some((each) => setsTimerFor(each, ({ name }) => name === resolve))) report(node);
      },
    };
  },
};
