// The drawing of a graph: an SVG with vertices that can be chosen and moved, and labels where they fit.
import { boundsOf, fitTo, newLayout, separate } from "./graph_layout.js";
import { placeEdgeLabels, placeLabels, shortened, widthOf } from "./graph_labels.js";
import { groupName, groupsOf, nameOf } from "./graph_model.js";
import { arrowShape, middleOf, pathOf, spread } from "./graph_edges.js";
import { ZOOM_STEP, listen } from "./graph_input.js";
import { svg } from "./ui.js";

export const SERIES = 8;
// Beyond this number vertices are small, so that none covers another when all are shown.
const MANY = 150;
const RADIUS = { few: 9, many: 5.5 };
const GAP = 4;
// Time for the layout within a frame of 16 ms.
const SLICE_MILLISECONDS = 8;
const SCALE_LIMITS = [0.05, 12];
const EDGE_LABELS_MAX = 400;
// Pixels, as in the style sheet.
const LETTERS = { vertex: 12, edge: 11 };

function labelOf(name, pixels) {
  const text = shortened(name);
  return { text, width: widthOf(text, pixels) };
}

// `onChoose` gets { vertex } or { edge } or null; `onState` a sentence about the drawing.
export function graphView(place, { onChoose, onState }) {
  const edgesLayer = svg("g");
  const verticesLayer = svg("g");
  const labelsLayer = svg("g", { "aria-hidden": "true" });
  const root = svg(
    "svg",
    { role: "group", "aria-label": "Drawing" },
    arrowShape(),
    edgesLayer,
    labelsLayer,
    verticesLayer,
  );
  place.replaceChildren(root);
  let graph = { vertices: [], edges: [] };
  let layout = null;
  let window_ = { scale: 1, x: 0, y: 0 };
  let [shapes, paths] = [[], []];
  let [chosen, focused] = [null, 0];
  let colors = "label";
  let frame = null;
  let isFollowing = true;

  const size = () => ({ width: place.clientWidth || 800, height: place.clientHeight || 500 });
  const radius = () => (graph.vertices.length > MANY ? RADIUS.many : RADIUS.few);
  const at = (number) => ({
    x: layout.x[number] * window_.scale + window_.x,
    y: layout.y[number] * window_.scale + window_.y,
  });

  // Show a graph. With `isMore` it is the one shown, with further elements: those it had keep their places.
  function show(shown, { isMore = false } = {}) {
    graph = shown;
    const links = graph.edges.map(({ source, target }) => [source.number, target.number]);
    const aspect = size().width / size().height;
    layout = newLayout(graph.vertices.length, links, { known: isMore ? layout : null, aspect });
    if (!isMore) [chosen, focused, isFollowing] = [null, 0, true];
    spread(graph.edges);
    const { vertices, edges } = graph;
    root.setAttribute(
      "aria-label",
      `Drawing of ${vertices.length} vertices and ${edges.length} edges. The tab Table has the same as text.`,
    );
    paths = edges.map(edgeShape);
    shapes = vertices.map(vertexShape);
    edgesLayer.replaceChildren(...paths);
    verticesLayer.replaceChildren(...shapes);
    labelsLayer.replaceChildren();
    color(colors);
    mark();
    root.dataset.state = "moving";
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(move);
  }

  function move() {
    layout.run(SLICE_MILLISECONDS);
    if (!layout.isDone) {
      if (isFollowing) window_ = fit();
      drawPlaces();
      frame = requestAnimationFrame(move);
      return;
    }
    makeRoom();
    if (isFollowing) window_ = fit();
    draw();
    root.dataset.state = "still";
    onState();
  }

  const fit = () => fitTo(boundsOf(layout.x, layout.y), size().width, size().height);

  // Vertices have the same size at every scale: they are moved apart until none covers another when all are shown.
  function makeRoom() {
    for (let round = 0; round < 8; round += 1) {
      const wanted = (2 * radius() + GAP) / fit().scale;
      if (separate(layout.x, layout.y, wanted) === 0) return;
    }
  }

  function drawPlaces() {
    graph.vertices.forEach((vertex, number) => {
      const { x, y } = at(number);
      shapes[number].setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    });
    graph.edges.forEach((edge, number) => {
      const d = pathOf(edge, at(edge.source.number), at(edge.target.number), radius());
      for (const path of paths[number].querySelectorAll("path")) path.setAttribute("d", d);
    });
  }

  // While something is moved by hand, labels would only jump about.
  function drawMoving() {
    isFollowing = false;
    drawPlaces();
    labelsLayer.replaceChildren();
  }

  function draw() {
    drawPlaces();
    const circles = graph.vertices.map((vertex, number) => ({
      ...at(number),
      ...labelOf(nameOf(vertex), LETTERS.vertex),
      importance: vertex === chosen?.vertex ? Infinity : vertex.degree,
    }));
    const { places, board } = placeLabels(circles, radius(), size());
    const isFew = graph.edges.length <= EDGE_LABELS_MAX;
    const middles = isFew
      ? graph.edges.map((edge) => ({
          ...middleOf(edge, at(edge.source.number), at(edge.target.number)),
          ...labelOf(edge.label, LETTERS.edge),
        }))
      : [];
    const edgePlaces = placeEdgeLabels(middles, board);
    labelsLayer.replaceChildren(
      ...places.flatMap((found, number) => (found ? [svg("text", found, circles[number].text)] : [])),
      ...edgePlaces.flatMap((found, number) =>
        found ? [svg("text", { ...found, class: "edge-label" }, middles[number].text)] : [],
      ),
    );
  }

  function vertexShape(vertex, number) {
    const shape = svg(
      "g",
      {
        tabindex: number === focused ? 0 : -1,
        role: "button",
        "aria-label": `${vertex.label ?? "vertex"} ${nameOf(vertex)}`,
      },
      svg("circle", { r: radius() }),
      svg("title", {}, `${vertex.label ?? "vertex"} ${vertex.id}`),
    );
    shape.dataset.vertex = vertex.id;
    shape.addEventListener("focus", () => focusOn(number));
    return shape;
  }

  function edgeShape(edge) {
    const shape = svg(
      "g",
      { class: edge.isImplied ? "edge implied" : "edge" },
      svg(
        "path",
        edge.isImplied ? {} : { "marker-end": `url(#${graph.edges.length > MANY ? "small-arrow" : "arrow"})` },
      ),
      svg("path", { class: "grip" }),
      svg("title", {}, edge.isImplied ? "neighbors on a path" : `${edge.label} ${edge.element.id}`),
    );
    if (!edge.isImplied) shape.addEventListener("click", () => choose({ edge }));
    return shape;
  }

  function color(by) {
    colors = by;
    const groups = groupsOf(graph.vertices, by, SERIES);
    const series = new Map(groups.map((group) => [group.name, group.series]));
    graph.vertices.forEach((vertex, number) => {
      const isLoaded = vertex.element !== null;
      const isChosen = vertex === chosen?.vertex;
      const of = series.get(groupName(vertex, by));
      shapes[number].setAttribute(
        "class",
        `vertex series-${of}${isLoaded ? "" : " unloaded"}${isChosen ? " selected" : ""}`,
      );
    });
    return groups;
  }

  function mark() {
    graph.vertices.forEach((vertex, number) => shapes[number].classList.toggle("selected", vertex === chosen?.vertex));
    graph.edges.forEach((edge, number) => paths[number].classList.toggle("selected", edge === chosen?.edge));
  }

  function choose(found) {
    chosen = found;
    mark();
    onChoose(found);
  }

  function focusOn(number) {
    shapes[focused]?.setAttribute("tabindex", -1);
    focused = number;
    shapes[number].setAttribute("tabindex", 0);
  }

  // Zoom about a point of the window, by default its middle.
  function zoom(factor, x = size().width / 2, y = size().height / 2) {
    const scale = Math.min(Math.max(window_.scale * factor, SCALE_LIMITS[0]), SCALE_LIMITS[1]);
    const by = scale / window_.scale;
    window_ = { scale, x: x - (x - window_.x) * by, y: y - (y - window_.y) * by };
    isFollowing = false;
    draw();
  }

  function showAll() {
    isFollowing = true;
    window_ = fit();
    draw();
  }

  // The nearest vertex in the direction of an arrow key, with what lies aside counting double.
  function neighbor(number, stepX, stepY) {
    const from = at(number);
    let best = null;
    graph.vertices.forEach((_, other) => {
      const [alongX, alongY] = [at(other).x - from.x, at(other).y - from.y];
      const ahead = alongX * stepX + alongY * stepY;
      if (other === number || ahead <= 0) return;
      const cost = ahead + 2 * Math.abs(alongX * stepY + alongY * stepX);
      if (!best || cost < best.cost) best = { other, cost };
    });
    return best?.other ?? null;
  }

  listen(root, {
    isReady: () => layout !== null,
    numberOf: (shape) => shapes.indexOf(shape),
    neighborOf: (stepX, stepY) => neighbor(focused, stepX, stepY),
    focus: (number) => shapes[number].focus(),
    chooseFocused: () => choose({ vertex: graph.vertices[focused] }),
    chooseNumber: (number) => choose(number < 0 ? null : { vertex: graph.vertices[number] }),
    zoom,
    showAll,
    placeOf: (number) => at(number),
    shift: () => ({ x: window_.x, y: window_.y }),
    moveVertex(number, x, y) {
      layout.hold(number, (x - window_.x) / window_.scale, (y - window_.y) / window_.scale);
      drawMoving();
    },
    moveWindow(x, y) {
      window_ = { ...window_, x, y };
      drawMoving();
    },
    endMove: draw,
  });
  new ResizeObserver(() => {
    if (layout?.isDone && place.clientWidth) (isFollowing ? showAll : draw)();
  }).observe(place);
  return { show, color, zoomIn: () => zoom(ZOOM_STEP), zoomOut: () => zoom(1 / ZOOM_STEP), showAll, choose };
}
