"""The forward pass of a small convolutional net on PyTorch: built with PyTorch alone, or with Keras on top of it."""

import numpy

PARAMS = {"by": ("torch", "keras")}

COMPARISONS = {"by": "torch"}

BATCH, SIZE, CHANNELS = 4, 32, (3, 32, 64, 128)


def refuse(keras, params):
    if not hasattr(keras, "config") or keras.config.backend() != "torch":
        return "This net compares Keras on PyTorch with PyTorch alone."
    return None


def build(keras, params):
    import torch

    model = with_torch(torch) if params["by"] == "torch" else with_keras(keras)
    order = (0, 3, 1, 2) if params["by"] == "torch" else (0, 1, 2, 3)
    data = numpy.random.RandomState(0).rand(BATCH, SIZE, SIZE, CHANNELS[0]).astype("float32").transpose(order)
    batch = torch.from_numpy(numpy.ascontiguousarray(data))

    def step():
        with torch.no_grad():
            return model(batch)

    step.no_result = "both nets draw their own weights"
    return step


def with_torch(torch):
    layers = []
    for before, after in zip(CHANNELS, CHANNELS[1:]):
        layers += [torch.nn.Conv2d(before, after, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(CHANNELS[-1], 10)]
    return torch.nn.Sequential(*layers + head).eval()


def with_keras(keras):
    x = inputs = keras.layers.Input(shape=(SIZE, SIZE, CHANNELS[0]))
    for after in CHANNELS[1:]:
        x = keras.layers.Conv2D(after, 3, padding="same", activation="relu")(x)
        x = keras.layers.MaxPooling2D(2)(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.models.Model(inputs, keras.layers.Dense(10)(x))
