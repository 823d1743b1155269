"""A stand-in for Keras' `fit`, as files of a program: what is asked of it while its steps are timed."""

SOURCES = {
    "keras/__init__.py": "from keras.engine import training\nModel = training.Model\n",
    "keras/engine/__init__.py": "",
    "keras/callbacks.py": """
        class Callback:
            def on_epoch_begin(self, epoch, logs=None): pass
            def on_batch_end(self, batch, logs=None): pass
            def on_epoch_end(self, epoch, logs=None): pass

        class Printing(Callback):
            def on_epoch_end(self, epoch, logs=None):
                print('epoch', epoch)
        """,
    "keras/engine/training.py": """
        import os
        import time

        class Model:
            def fit(self, x=None, epochs=1, callbacks=None):
                return self.fit_generator(x, epochs, callbacks)

            def fit_generator(self, x, epochs=1, callbacks=None):
                assert len([each for each in callbacks or [] if type(each).__name__ == 'StepTimes']) <= 1
                time.sleep(0.2)
                for epoch in range(epochs):
                    for each in callbacks or []:
                        each.on_epoch_begin(epoch)
                    for batch in range(5):
                        time.sleep(float(os.environ.get('STUB_STEP_S', '0.01')))
                        for each in callbacks or []:
                            each.on_batch_end(batch, {})
                    time.sleep(0.1)
                    for each in callbacks or []:
                        each.on_epoch_end(epoch, {'loss': 1.0 / (epoch + 1)})
        """,
}
