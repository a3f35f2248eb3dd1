// The graph of a result: vertices and edges out of elements, paths and maps. No request and no element of the page.

// Beyond these a drawing is a blot, and a browser slows down; the table and the JSON have everything.
export const VERTICES_MAX = 1000;
export const EDGES_MAX = 4000;
// Deeper values have no elements that a traversal would put there.
const DEPTH_MAX = 20;

// `keyProperty` is the name of the graph's partition key, "" for a graph without partitions.
export function newGraph(keyProperty) {
  const graph = { keyProperty, vertices: [], edges: [], left: 0 };
  const byPlace = new Map();
  const byId = new Map();
  const byEdge = new Map();
  const links = new Set();

  function placeOf(key, id) {
    return JSON.stringify([key ?? null, id]);
  }

  function keyOf(element) {
    const stored = keyProperty ? element.properties?.[keyProperty] : undefined;
    const first = Array.isArray(stored) ? stored[0] : stored;
    return first !== null && typeof first === "object" ? first.value : first;
  }

  function create(id, label) {
    if (graph.vertices.length >= VERTICES_MAX) {
      graph.left += 1;
      return null;
    }
    const vertex = { number: graph.vertices.length, id, label, key: undefined, element: null, degree: 0 };
    graph.vertices.push(vertex);
    if (!byId.has(id)) byId.set(id, vertex);
    return vertex;
  }

  function addVertex(element) {
    const key = keyOf(element);
    const place = placeOf(key, element.id);
    let vertex = byPlace.get(place);
    // An edge names its ends by id only: that end is this vertex, if no other has the id.
    if (!vertex && byId.get(element.id)?.element === null) vertex = byId.get(element.id);
    vertex ??= create(element.id, element.label);
    if (!vertex) return null;
    byPlace.set(place, vertex);
    // A vertex may come without its properties, from a step that did not load them.
    if (vertex.element === null || element.properties) {
      Object.assign(vertex, { element, label: element.label, key: key ?? vertex.key });
    }
    return vertex;
  }

  function end(id, label) {
    return byId.get(id) ?? create(id, label);
  }

  function link(edge) {
    if (graph.edges.length >= EDGES_MAX) {
      graph.left += 1;
      return;
    }
    edge.source.degree += 1;
    edge.target.degree += 1;
    links.add(`${edge.source.number} ${edge.target.number}`).add(`${edge.target.number} ${edge.source.number}`);
    graph.edges.push({ number: graph.edges.length, ...edge });
  }

  function addEdge(element) {
    const place = placeOf(element.outV, element.id);
    if (byEdge.has(place)) return;
    const source = end(element.outV, element.outVLabel);
    const target = end(element.inV, element.inVLabel);
    if (!source || !target) return;
    byEdge.set(place, true);
    link({ source, target, label: element.label, element, isImplied: false });
  }

  // A path over vertices alone says that they are neighbors, though not by which edge.
  function addPath(objects) {
    let before = null;
    for (const object of objects) {
      const found = add(object, 1);
      if (before && found && found !== before && !links.has(`${before.number} ${found.number}`)) {
        link({ source: before, target: found, label: "", element: null, isImplied: true });
      }
      before = found;
    }
  }

  // Add all elements of a value; returns the vertex if it is one.
  function add(value, depth = 0) {
    if (value === null || typeof value !== "object" || depth > DEPTH_MAX) return null;
    if (Array.isArray(value)) {
      for (const inner of value) add(inner, depth + 1);
      return null;
    }
    if (value.type === "vertex" && value.id !== undefined) return addVertex(value);
    if (value.type === "edge" && value.inV !== undefined && value.outV !== undefined) {
      addEdge(value);
      return null;
    }
    if (Array.isArray(value.objects) && Array.isArray(value.labels)) {
      addPath(value.objects);
      return null;
    }
    for (const inner of Object.values(value)) add(inner, depth + 1);
    return null;
  }

  return { graph, add: (results) => add(results) };
}

// Values of a vertex's properties, [name, text of the values], its partition key first as the server sends it.
export function factsOf(element) {
  return Object.entries(element?.properties ?? {}).map(([name, stored]) => {
    const values = Array.isArray(stored) ? stored : [stored];
    return [name, values.map((value) => textOf(value?.value ?? value)).join(", ")];
  });
}

export function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

// The short text beside a vertex: a property that people call things by, or else its id.
export function nameOf(vertex) {
  const properties = vertex.element?.properties ?? {};
  const named = ["name", "title"]
    .map((name) => properties[name]?.[0]?.value)
    .find((value) => typeof value === "string");
  return named ?? vertex.id;
}

// Groups of vertices for colors, the largest first: [{ name, series, count }]; the last series is for all others.
export function groupsOf(vertices, by, seriesCount) {
  const counts = new Map();
  for (const vertex of vertices) {
    const name = groupName(vertex, by);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return sorted.map(([name, count], place) => ({ name, count, series: Math.min(place + 1, seriesCount) }));
}

export function groupName(vertex, by) {
  if (by === "label") return vertex.label ?? "vertex";
  return vertex.key === undefined ? "(not loaded)" : textOf(vertex.key);
}

// A value as Gremlin's text. Single quotes, because a dollar sign in double ones would be an expression.
export function literal(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  const escaped = JSON.stringify(value).slice(1, -1).replace(/\\"/g, '"').replace(/'/g, "\\'");
  return `'${escaped}'`;
}

// The way to one vertex: by partition key and id where the key is known, which is one point read.
export function traversalTo(vertex) {
  const hasKey = vertex.key !== undefined && vertex.key !== null;
  return hasKey ? `g.V([${literal(vertex.key)}, ${literal(vertex.id)}])` : `g.V(${literal(vertex.id)})`;
}
