// Runs in the browser, on /docs.
globalThis.ui = globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  filter: true,
  showExtensions: false,
  // Would send the document to a server of theirs.
  validatorUrl: null,
});
