"""May one move to another TensorFlow: what is measured for the answer, and the page that gives it."""
