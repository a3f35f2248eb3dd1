// Keys, wheel and pointer on a drawing: arrows go from vertex to vertex, dragging moves a vertex or the window.
export const ZOOM_STEP = 1.3;
const WHEEL_STEP = 1.14;
const DRAG_PIXELS_MIN = 4;
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

// `view` has the actions, see graph_view.js.
export function listen(root, view) {
  root.addEventListener("keydown", (event) => onKey(event, view));
  root.addEventListener(
    "wheel",
    (event) => {
      if (!view.isReady()) return;
      event.preventDefault();
      const box = root.getBoundingClientRect();
      view.zoom(WHEEL_STEP ** -Math.sign(event.deltaY), event.clientX - box.left, event.clientY - box.top);
    },
    { passive: false },
  );
  root.addEventListener("pointerdown", (event) => onPress(event, root, view));
}

function onKey(event, view) {
  if (!view.isReady()) return;
  const arrow = ARROWS[event.key];
  const next = arrow ? view.neighborOf(...arrow) : null;
  if (next !== null) view.focus(next);
  else if (event.key === "Enter" || event.key === " ") view.chooseFocused();
  else if (event.key === "+" || event.key === "=") view.zoom(ZOOM_STEP);
  else if (event.key === "-") view.zoom(1 / ZOOM_STEP);
  else if (event.key === "0") view.showAll();
  else if (!arrow) return;
  event.preventDefault();
}

function onPress(event, root, view) {
  const shape = event.target.closest(".vertex");
  const number = shape ? view.numberOf(shape) : -1;
  // Edges have clicks of their own.
  if (event.button !== 0 || !view.isReady() || (number < 0 && event.target.closest(".edge"))) return;
  const start = number < 0 ? view.shift() : view.placeOf(number);
  let isMoved = false;
  root.setPointerCapture(event.pointerId);

  function onMove(now) {
    const [movedX, movedY] = [now.clientX - event.clientX, now.clientY - event.clientY];
    if (!isMoved && Math.hypot(movedX, movedY) < DRAG_PIXELS_MIN) return;
    isMoved = true;
    root.classList.add("moving");
    if (number < 0) view.moveWindow(start.x + movedX, start.y + movedY);
    else view.moveVertex(number, start.x + movedX, start.y + movedY);
  }

  function onUp() {
    root.removeEventListener("pointermove", onMove);
    root.removeEventListener("pointerup", onUp);
    root.removeEventListener("pointercancel", onUp);
    root.classList.remove("moving");
    if (isMoved) view.endMove();
    else {
      if (number >= 0) view.focus(number);
      view.chooseNumber(number);
    }
  }

  root.addEventListener("pointermove", onMove);
  root.addEventListener("pointerup", onUp);
  root.addEventListener("pointercancel", onUp);
}
